//! Checks the log of a directory that no process has open, even one that cannot be opened.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use longhaul_engine::StoreError;

use super::{CheckReport, Damage, Findings, REWRITE};
use crate::blob::{BlobStore, Source};
use crate::error::blocking;
use crate::key;
use crate::salvage::{Content, Salvage, salvage_with};
use crate::sled_store::SledStore;
use crate::snapshot;

/// The most repeated checks of a repaired log: one repair may reveal further damage.
const ROUNDS: u32 = 4;

/// Checks the log of a directory. With `repair`, repairs it so that it opens and is whole: readable
/// data is kept, records that are useless without lost ones move into `quarantine/`, and a log with
/// an unreadable part is kept beside the new one.
///
/// # Errors
/// If a process owns the log, or files cannot be read or written. Findings are not errors.
pub async fn check_at_rest(directory: &Path, repair: bool) -> Result<CheckReport, StoreError> {
    let damages = match open(directory).await {
        Ok(store) => {
            let report = whole_check(&store, repair).await?;
            close(store).await?;
            if !report.needs_rewrite {
                return Ok(report);
            }
            report.damages.into_iter().filter(|damage| damage.repair == REWRITE).collect()
        }
        Err(StoreError::Unopenable { log, reason }) => {
            let what = format!("it cannot be opened: {reason}");
            vec![Damage { record: log, what, repair: REWRITE.into(), repaired: false }]
        }
        Err(error) => return Err(error),
    };
    rewrite(directory, damages, repair).await
}

async fn open(directory: &Path) -> Result<SledStore, StoreError> {
    let directory = directory.to_owned();
    blocking(move || SledStore::open(&directory)).await
}

async fn close(store: SledStore) -> Result<(), StoreError> {
    blocking(move || {
        store.close();
        Ok(())
    })
    .await
}

/// Checks and repairs until nothing repairable is found; the report of all rounds.
async fn whole_check(store: &SledStore, repair: bool) -> Result<CheckReport, StoreError> {
    let mut report = store.check(repair).await?;
    for _ in 1..ROUNDS {
        if !repair || !report.damages.iter().any(|damage| damage.repaired) {
            break;
        }
        let CheckReport { damages, quarantined, .. } = report;
        report = store.check(true).await?;
        let is_done = report.damages.is_empty();
        report.damages.splice(..0, damages.into_iter().filter(|damage| damage.repaired));
        report.quarantined.splice(..0, quarantined);
        if is_done {
            break;
        }
    }
    Ok(report)
}

/// Checks the readable part of a damaged log; with `repair`, builds a new log from it and checks
/// that.
async fn rewrite(
    directory: &Path,
    mut damages: Vec<Damage>,
    repair: bool,
) -> Result<CheckReport, StoreError> {
    let place = directory.to_owned();
    let (salvage, preview) = blocking(move || {
        let mut preview = CheckReport::default();
        let salvage = salvage_with(&place, repair, |content| {
            preview = look_at(&place, content)?;
            Ok(())
        })?;
        Ok((salvage, preview))
    })
    .await?;
    let Salvage { records, places, first, kept } = salvage;
    if let Some(damage) = damages.first_mut() {
        let at = first.map(|byte| format!(", the first at byte {byte}")).unwrap_or_default();
        damage.what +=
            &format!("; {records} records can be read, {places} places of the file cannot{at}");
    }
    if kept.is_none() {
        damages.extend(preview.damages);
        return Ok(CheckReport { damages, records, needs_rewrite: true, ..preview });
    }
    for damage in &mut damages {
        damage.repaired = true;
    }
    let store = open(directory).await?;
    let mut report = whole_check(&store, true).await?;
    close(store).await?;
    report.damages.splice(..0, damages);
    Ok(CheckReport { kept, ..report })
}

/// The findings of a check of the log built from this content.
fn look_at(directory: &Path, content: &Content) -> Result<CheckReport, StoreError> {
    let blobs = BlobStore::open(directory.join("blobs"), Arc::default())?;
    let mut runs = BTreeMap::new();
    let mut strays = Vec::new();
    for (key, value) in content.records() {
        if let Some(kind @ (&key::EVENT | &key::MESSAGE | &key::PUBLISHED | &key::SUMMARY)) =
            key.first()
        {
            let entry = (key.as_slice().into(), value.as_slice().into());
            strays.extend(snapshot::add(&mut runs, *kind, entry));
        }
    }
    let mut findings = Findings::default();
    findings.report.blobs = blobs.all()?.len() as u64;
    let names = RefCell::default();
    for (run, records) in &runs {
        findings.look_at(
            run,
            records,
            Source::Noting { store: &blobs, names: &names, payloads: true },
        );
    }
    findings.strays(&strays);
    findings.lost_between_runs(&runs);
    let Findings { mut report, found, .. } = findings;
    report.damages = found.iter().map(|finding| finding.to_damage(false)).collect();
    Ok(report)
}
