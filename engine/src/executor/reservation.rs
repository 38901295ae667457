//! Memory reserved for a run that is being created, so that its first activation does not read its
//! own creation back.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::store::Creation;

use super::inbox::Inbox;
use super::shared::Shared;

/// Held until the creation is durable: messages to the run arrive in its inbox. Dropping it
/// releases the run.
pub(super) struct Reservation<'a> {
    shared: &'a Shared,
    inbox: Arc<Inbox>,
    creation: Option<Creation>,
}

impl<'a> Reservation<'a> {
    /// `None`: the run is already in memory, or must not be.
    pub(super) fn new(shared: &'a Shared, creation: &Creation) -> Option<Self> {
        if shared.is_stopping() || !shared.is_adopted(&creation.run) {
            return None;
        }
        let inbox = Arc::<Inbox>::default();
        match shared.residents().entry(creation.run.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(place) => place.insert(Arc::clone(&inbox)),
        };
        Some(Self { shared, inbox, creation: Some(creation.clone()) })
    }

    /// The run is created.
    pub(super) fn begin(mut self) {
        if let Some(creation) = self.creation.take_if(|_| !self.shared.is_stopping()) {
            self.shared.begin(creation.run.clone(), Arc::clone(&self.inbox), Some(creation));
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let Some(Creation { run, .. }) = self.creation.take() else { return };
        let mut residents = self.shared.residents();
        residents.remove(&run);
        let wanted = self.inbox.has_unseen();
        drop(residents);
        // The run existed, and a message arrived for it meanwhile.
        if wanted {
            self.shared.wake(run);
        }
    }
}
