//! Client of the log: connects to the process that owns it, or opens a log at rest.

use std::path::Path;
use std::sync::Arc;

use longhaul_activities::git::GitHandlers;
use longhaul_engine::StoreError;
use longhaul_storage::SledStore;

use crate::error::{Error, Result};
use crate::lock_wait::{LockWait, Notify};
use crate::perform::Perform;
use crate::refused;
use crate::service::Service;
use crate::socket::Remote;

/// A connection to the log of a data directory.
pub enum Client {
    /// Another process owns the log.
    Remote(Remote),
    /// The log was at rest and this process opened it.
    Local(Arc<Service>),
}

impl Client {
    /// Connects to the log; `None` if there is none. If the owner exits before it responds, the
    /// request goes to the next owner.
    pub async fn reach(data_dir: &Path, notify: Notify) -> Result<Option<Self>> {
        Ok(Self::reach_now(data_dir, notify).await?.map(|access| match access {
            Self::Remote(remote) => Self::Remote(remote.with_failover()),
            access @ Self::Local(_) => access,
        }))
    }

    /// Connects to the current owner of the log, without failover to the next one; `None` if there
    /// is none. Waits for an owner that is starting.
    pub async fn reach_owner(data_dir: &Path, notify: Notify) -> Result<Option<Self>> {
        Ok(Self::reach_now(data_dir, notify)
            .await?
            .filter(|access| matches!(access, Self::Remote(_))))
    }

    async fn reach_now(data_dir: &Path, notify: Notify) -> Result<Option<Self>> {
        let mut waiting = LockWait::new(notify);
        loop {
            if let Some(remote) = Remote::connect(data_dir, notify).await {
                return Ok(Some(Self::Remote(remote)));
            }
            let dir = data_dir.display();
            if data_dir.exists() && !data_dir.is_dir() {
                return Err(Error::usage(format!(
                    "{dir} is no directory: name the data directory with --data-dir"
                )));
            }
            // A log without its lock file is whole: opening it creates the file.
            let has = |name: &str| {
                let exists = data_dir.join(name).try_exists();
                exists.map_err(Error::io(format!("cannot look into {dir}")))
            };
            if !has("lock")? && !has("log")? {
                // A sandbox hides the log: a directory that looks empty may hold one.
                refused::refuse_hidden_log(data_dir)?;
                return Ok(None);
            }
            match SledStore::open(data_dir) {
                Ok(store) => {
                    let git = GitHandlers::new(data_dir);
                    return Ok(Some(Self::Local(Service::at_rest(Arc::new(store), git))));
                }
                // The owner is starting, or another command has the log open for a moment.
                Err(StoreError::Owned { owner, .. }) => waiting.poll(data_dir, owner).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Like `open`, but creates a missing log, for commands that fill it.
    pub async fn reach_or_create(data_dir: &Path, notify: Notify) -> Result<Self> {
        if let Some(access) = Self::reach(data_dir, notify).await? {
            return Ok(access);
        }
        match SledStore::open(data_dir) {
            Ok(store) => {
                Ok(Self::Local(Service::at_rest(Arc::new(store), GitHandlers::new(data_dir))))
            }
            Err(error @ StoreError::Owned { .. }) => {
                Self::reach(data_dir, notify).await?.ok_or_else(|| error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Connects to the owner of the log, if it accepts connections now.
    pub async fn at_owner(data_dir: &Path, notify: Notify) -> Option<Self> {
        Remote::connect(data_dir, notify).await.map(Self::Remote)
    }

    /// Makes a request.
    pub async fn call<R: Perform>(&self, request: R) -> Result<R::Response> {
        match self {
            Self::Local(service) => Ok(service.perform_here(request).await?),
            Self::Remote(remote) => match remote.call(&request).await {
                Err(Error::Gone(gone)) if remote.fails_over && gone.allows(&request) => {
                    Self::call_next(&remote.data_dir, request, remote.notify).await
                }
                response => response,
            },
        }
    }

    /// Repeats a request at the next owner after the current one exited.
    async fn call_next<R: Perform>(
        data_dir: &Path,
        request: R,
        notify: Notify,
    ) -> Result<R::Response> {
        let mut waiting = LockWait::new(notify);
        loop {
            let Some(client) = Self::reach_now(data_dir, notify).await? else {
                let data_dir = data_dir.display();
                return Err(Error::operational(format!("the log in {data_dir} is gone")));
            };
            match client {
                Self::Local(service) => return Ok(service.perform_here(request).await?),
                Self::Remote(owner) => match owner.call(&request).await {
                    Err(Error::Gone(gone)) if gone.allows(&request) => {}
                    response => return response,
                },
            }
            waiting.poll(data_dir, "that is about to end".into()).await?;
        }
    }
}
