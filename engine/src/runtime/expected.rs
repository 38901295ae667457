//! A place in memory for a run that is about to be born, so that its first life needs not read what was just written.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::local::Inbox;
use crate::store::Birth;

use super::Shared;

/// Holds the place while the birth is made durable: whatever concerns the run comes here. Dropping it gives it up.
pub(super) struct Expected<'a> {
    shared: &'a Shared,
    inbox: Arc<Inbox>,
    birth: Option<Birth>,
}

impl<'a> Expected<'a> {
    /// `None`: the run is in memory already, or is not to be.
    pub(super) fn new(shared: &'a Shared, birth: &Birth) -> Option<Self> {
        if shared.is_stopping() || !shared.is_adopted(&birth.run) {
            return None;
        }
        let inbox = Arc::<Inbox>::default();
        match shared.residents().entry(birth.run.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(place) => place.insert(Arc::clone(&inbox)),
        };
        Some(Self { shared, inbox, birth: Some(birth.clone()) })
    }

    /// The run is born.
    pub(super) fn begin(mut self) {
        if let Some(birth) = self.birth.take_if(|_| !self.shared.is_stopping()) {
            self.shared.begin(birth.run.clone(), Arc::clone(&self.inbox), Some(birth));
        }
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        let Some(Birth { run, .. }) = self.birth.take() else { return };
        let mut residents = self.shared.residents();
        residents.remove(&run);
        let wanted = self.inbox.has_unseen();
        drop(residents);
        // It was there all along, and somebody had something for it.
        if wanted {
            self.shared.wake(run);
        }
    }
}
