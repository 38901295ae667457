//! Where the features of a project stand: as it has published it, with what it was told since and has not taken yet. On a
//! log at rest that is what happens first when it is run again.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::{Message, MessageBody, Payload, RunId, RunReader, StoreError};
use longhaul_workflows::backlog::{Feature, FeatureId, FeatureStatus};
use longhaul_workflows::finding::Findings;
use longhaul_workflows::project::{BacklogView, FeatureView, Forked, Unblock, signal};

/// What a project has published, the features by their ids, and whether a word that was not taken yet changes one.
#[derive(Debug, Default)]
pub(crate) struct Features {
    pub published: BTreeMap<String, Payload>,
    pub views: BTreeMap<String, FeatureView>,
    pub is_changed: bool,
}

impl Features {
    /// Those of a project.
    pub(crate) async fn of(store: &dyn RunReader, project: &RunId) -> Result<Self, StoreError> {
        let (published, mail) = at_once(store, project).await?;
        let listed = published.get(BacklogView::KEY).and_then(|view| view.read::<BacklogView>().ok());
        let listed = listed.map(|backlog| backlog.features).unwrap_or_default();
        let mut features = Self { views: said(&published), published, is_changed: false };
        for message in &mail {
            if let MessageBody::Signal { name, payload, .. } = &message.body {
                features.hear(project, &listed, name, payload);
            }
        }
        Ok(features)
    }

    fn hear(&mut self, project: &RunId, listed: &[Feature], name: &str, payload: &Payload) {
        match name {
            Forked::SIGNAL => {
                let Ok(forked) = payload.read::<Forked>() else { return };
                self.set(&forked.feature, FeatureStatus::InProgress, None);
                if let Some(view) = self.views.get_mut(forked.feature.as_str()) {
                    view.run = RunId::new(format!("{project}/{}/{}", forked.feature, forked.run)).ok();
                    view.sessions = view.sessions.saturating_sub(forked.sessions);
                    view.invalidated = None;
                }
                self.invalidate_below(&forked.feature, listed);
            }
            signal::UNBLOCK => {
                let Ok(unblock) = payload.read::<Unblock>() else { return };
                let feature = unblock.feature();
                if self.views.get(feature.as_str()).is_some_and(|view| view.status == FeatureStatus::Blocked) {
                    self.set(feature, FeatureStatus::Pending, None);
                }
            }
            signal::BLOCK => {
                if let Ok((feature, reason)) = payload.read::<(FeatureId, String)>() {
                    self.set(&feature, FeatureStatus::Blocked, Some(reason));
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, feature: &FeatureId, status: FeatureStatus, reason: Option<String>) {
        self.is_changed = true;
        let view = self.views.entry(feature.to_string()).or_insert_with(|| FeatureView {
            status,
            passes: false,
            run: None,
            sessions: 0,
            reason: None,
            waits: None,
            commit: None,
            called_done: false,
            invalidated: None,
            findings: Findings::default(),
        });
        (view.status, view.passes, view.reason) = (status, false, reason);
    }

    /// What passed on top of a feature that is taken back is asked again.
    fn invalidate_below(&mut self, root: &FeatureId, listed: &[Feature]) {
        let mut seen = BTreeSet::from([root]);
        let mut open = vec![root];
        while let Some(below) = open.pop() {
            let on_it = listed.iter().filter(|feature| feature.depends_on.contains(below));
            let new: Vec<_> = on_it.map(|feature| &feature.id).filter(|id| seen.insert(id)).collect();
            for id in &new {
                if self.views.get(id.as_str()).is_some_and(|view| view.passes) {
                    self.set(id, FeatureStatus::Pending, None);
                    self.views.entry(id.to_string()).and_modify(|view| view.invalidated = Some(root.clone()));
                }
            }
            open.extend(new);
        }
    }
}

/// What a project has published and what lies in its mailbox, of one moment: between the two reads it may have taken a word.
async fn at_once(
    store: &dyn RunReader,
    project: &RunId,
) -> Result<(BTreeMap<String, Payload>, Vec<Message>), StoreError> {
    let mut mail = store.mailbox(project).await?;
    loop {
        let published = store.published(project).await?;
        let after = store.mailbox(project).await?;
        if after == mail {
            return Ok((published, mail));
        }
        mail = after;
    }
}

/// What a project says of its features, by their ids.
pub(crate) fn said(published: &BTreeMap<String, Payload>) -> BTreeMap<String, FeatureView> {
    let view = |(key, value): (&String, &Payload)| {
        Some((key.strip_prefix(FeatureView::PREFIX)?.to_owned(), value.read::<FeatureView>().ok()?))
    };
    published.iter().filter_map(view).collect()
}
