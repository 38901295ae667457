//! What a person should know of a feature although it stops nothing: as its run has published it, with what lies in its
//! mailbox.

use longhaul_engine::{MessageBody, Payload, RunId, RunReader, StoreError};
use longhaul_workflows::feature::{FeatureOutcome, FeatureProgress};
use longhaul_workflows::finding::{Finding, Findings, SteeringRefused};

/// Those of a run. `output` is what it came to, if it is over.
pub(crate) async fn of_run(
    store: &dyn RunReader,
    run: &RunId,
    output: Option<&Payload>,
) -> Result<Findings, StoreError> {
    let mut findings = match output.and_then(|output| output.read::<FeatureOutcome>().ok()) {
        Some(FeatureOutcome::Passed { progress, .. } | FeatureOutcome::Blocked { progress, .. }) => progress.findings,
        None => {
            let published = store.published(run).await?;
            let progress = published.get(FeatureProgress::KEY).and_then(|value| value.read::<FeatureProgress>().ok());
            progress.map(|progress| progress.findings).unwrap_or_default()
        }
    };
    for message in store.mailbox(run).await? {
        if let MessageBody::Signal { name, payload, from: None, .. } = &message.body
            && name == SteeringRefused::SIGNAL
            && let Ok(refused) = payload.read::<SteeringRefused>()
        {
            findings.add(refused.into());
        }
    }
    Ok(findings)
}

/// Findings as sentences without a full stop.
pub(crate) fn texts(findings: &Findings) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}
