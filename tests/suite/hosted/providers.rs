//! Limits of a provider, which all projects of the process share.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;

use chrono::{DateTime, TimeDelta, Utc};
use longhaul_model_server::{Fault, Hold, ModelServer, Options, Outcome, Reply, Request};
use longhaul_tests::command::Longhaul;
use longhaul_tests::project::Project;
use longhaul_tests::wait::{PATIENCE, until};

use super::{Hosted, PLANS, works};

/// Two projects of one owner, whose agents speak to the same provider.
struct Two {
    first: Hosted,
    second: Project,
}

impl Two {
    /// `limits` are those of the provider `scripted`.
    fn new(limits: &str, script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let provider = "provider = \"scripted\"\n";
        let first = Hosted::new(&PLANS[..1], provider, Options::default(), script);
        let home = first.world.project.home();
        DirBuilder::new().mode(0o700).create(&home).unwrap();
        fs::write(home.join("providers.toml"), format!("[providers.scripted]\n{limits}")).unwrap();
        let second = Project::new(&PLANS[..1], 0.0);
        second.write("longhaul.toml", &first.world.project.read("longhaul.toml"));
        second.commit("The built-in agent");
        Self { first, second }
    }

    fn longhaul(&self) -> &Longhaul {
        &self.first.world.longhaul
    }

    fn server(&self) -> &ModelServer {
        &self.first.server
    }

    /// The directories of both.
    fn roots(&self) -> [String; 2] {
        let roots = [self.first.world.project.root(), self.second.root()];
        roots.map(|root| root.to_string_lossy().into_owned())
    }

    /// Why the feature of a project waits.
    fn why(&self, root: &str) -> String {
        self.longhaul().call(&["why", "parser", "--dir", root]).stdout
    }
}

#[test]
fn two_projects_share_the_requests_of_a_minute() {
    let two = Two::new("requests_per_minute = 3\n", works);
    let [first, second] = two.roots();
    let output = two.longhaul().call(&["run", "--once", "-o", "json", &first, &second]);
    let document = output.exits(3).json();
    assert_eq!(two.server().records().len(), 3, "three requests in all");
    let due: DateTime<Utc> = document["next_due"].as_str().unwrap().parse().unwrap();
    assert!(due - Utc::now() <= TimeDelta::minutes(1), "{due}");
    let why = two.why(&first) + &two.why(&second);
    assert!(why.contains("providers.toml limits scripted to 3 requests per minute"), "{why}");
    assert!(two.longhaul().call(&["replay", "--all"]).exits(0).stdout.contains("0 diverged"));
}

#[test]
fn a_rate_limit_of_one_project_holds_for_the_other_and_after_a_restart() {
    let limited = super::failures::failing(&[2], || Fault::RateLimited(Some(3600)).into());
    let two = Two::new("", limited);
    let [first, second] = two.roots();
    two.longhaul().call(&["run", "--once", &first]).exits(3);
    assert_eq!(two.server().records().len(), 2);
    two.longhaul().call(&["run", "--once", &second]).exits(3);
    assert_eq!(two.server().records().len(), 2, "the second project requests nothing");
    let why = two.why(&second);
    assert!(why.contains("the provider scripted accepts no request for scripted before"), "{why}");
}

#[test]
fn two_projects_share_the_concurrent_requests() {
    let hold = Hold::new();
    let holding = hold.clone();
    let script = move |request: &Request| {
        let reply = works(request);
        if request.number == 1 { Reply::Held(holding.clone(), Box::new(reply)) } else { reply }
    };
    let two = Two::new("concurrent = 1\n", script);
    let [first, second] = two.roots();
    let output = two.second.place().join("output");
    let mut run = two.longhaul().begin(&["run", &first, &second], &output);
    assert!(two.server().wait_for(PATIENCE, |records| !records.is_empty()));
    let waits = "It waits for its turn: providers.toml limits the requests to scripted";
    until("the other project waits for its turn", || {
        two.why(&first).contains(waits) || two.why(&second).contains(waits)
    });
    assert_eq!(two.server().records().len(), 1);
    hold.release();
    run.exits(0);
    assert_eq!(two.server().count(Outcome::Answered), 8);
}
