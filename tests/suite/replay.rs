//! Code that does something else than its history says is found out, and harms nothing.

use longhaul_engine::{
    ContextExt, EventKind, Filter, Handlers, Outcome, Payload, RunReader, Workflows, verify,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::script::{
    Counts, Script, Step, capitals, done, engine, id, new_run, script, shape, until,
};

fn calling(inputs: &'static [&'static str]) -> impl longhaul_engine::Workflow {
    script(move |context, _| {
        Box::pin(async move {
            for input in inputs {
                context.call::<Step>((*input).into()).await?;
            }
            done("end")
        })
    })
}

/// Records a run that stops before its last step, then goes on with other code.
async fn change(
    before: &'static [&'static str],
    after: &'static [&'static str],
) -> (Vec<String>, Option<String>) {
    let memory = MemoryStore::new();
    let waiting = script(move |context, _| {
        Box::pin(async move {
            for input in before {
                context.call::<Step>((*input).into()).await?;
            }
            context.receive(&Filter::any(), None).await?;
            done("end")
        })
    });
    let handlers = || Handlers::new().with::<Step>(capitals(&Counts::default()));
    let first = engine(memory.clone(), Workflows::new().with("w", waiting), handlers()).await;
    first.start(new_run("changed", "w", "")).await.unwrap();
    until("it waits", async || {
        shape(&memory, "changed").await.ends_with(&["MessageAwaited".into()])
    })
    .await;
    first.stop().await;
    let recorded = shape(&memory, "changed").await;

    let second =
        engine(memory.clone(), Workflows::new().with("w", calling(after)), handlers()).await;
    second.signal(&id("changed"), "go", Payload::null()).await.unwrap();
    second.start(new_run("other", "w", "")).await.unwrap();
    assert!(
        matches!(second.outcome(&id("other")).await, Ok(Outcome::Completed(_))),
        "other runs go on"
    );
    until("it is stuck", async || second.stuck().contains_key(&id("changed"))).await;
    let stuck = second.stuck().remove(&id("changed")).map(|stop| stop.to_string());
    second.stop().await;
    assert_eq!(shape(&memory, "changed").await, recorded, "nothing is appended");
    (recorded, stuck)
}

#[tokio::test]
async fn another_input_names_both_sides_and_the_place() {
    let (_, stuck) = change(&["a", "b"], &["a", "x"]).await;
    let expected = r#"diverged at position 2: recorded call step "b", asked call step "x""#;
    assert_eq!(stuck.as_deref(), Some(expected));
}

#[tokio::test]
async fn another_input_of_a_later_call_parks_that_run_and_no_other() {
    let calling_all = |inputs: &'static [&'static str], is_patient: bool| {
        script(move |context, _| {
            Box::pin(async move {
                let inputs: Vec<String> = inputs.iter().map(|input| (*input).into()).collect();
                let results = context.all::<Step>(&inputs).await?;
                if is_patient {
                    context.receive(&Filter::any(), None).await?;
                }
                done(results.into_iter().flatten().collect::<Vec<_>>().join(" "))
            })
        })
    };
    let changed_input =
        r#"recorded call step "b" (2 of 2 calls), asked call step "c" (2 of 2 calls)"#;
    let one = r#"recorded call step "a" (1 of 2 calls), asked call step "a" (1 calls)"#;
    let three = r#"asked call step "a" and call step "b" and call step "c" (3 calls)"#;
    let cases: [(&'static [&'static str], &str); 3] =
        [(&["a", "c"], changed_input), (&["a"], one), (&["a", "b", "c"], three)];
    for (inputs, expected) in cases {
        let (memory, counts) = (MemoryStore::new(), Counts::default());
        let handlers = || Handlers::new().with::<Step>(capitals(&counts));
        let code = Workflows::new().with("w", calling_all(&["a", "b"], true));
        let first = engine(memory.clone(), code, handlers()).await;
        first.start(new_run("changed", "w", "")).await.unwrap();
        until("it waits", async || {
            shape(&memory, "changed").await.ends_with(&["MessageAwaited".into()])
        })
        .await;
        first.stop().await;
        let (recorded, performed) = (memory.read(&id("changed"), 0).await.unwrap(), counts.all());

        let code = Workflows::new()
            .with("w", calling_all(inputs, false))
            .with("other", calling_all(&["z"], false));
        let second = engine(memory.clone(), code.clone(), handlers()).await;
        second.signal(&id("changed"), "go", Payload::null()).await.unwrap();
        until("it is stuck", async || second.stuck().contains_key(&id("changed"))).await;
        let stuck =
            second.stuck().remove(&id("changed")).map(|stop| stop.to_string()).unwrap_or_default();
        assert!(stuck.contains(expected), "{stuck}");
        assert_eq!(counts.all(), performed, "nothing is performed");
        second.start(new_run("other", "other", "")).await.unwrap();
        assert_eq!(
            second.outcome(&id("other")).await.unwrap(),
            Outcome::Completed(Payload::of("Z"))
        );
        second.stop().await;
        assert_eq!(memory.read(&id("changed"), 0).await.unwrap(), recorded, "nothing is appended");
        let verified = verify(&code, &id("changed"), &recorded).unwrap().unwrap();
        assert_eq!(verified.to_string(), stuck, "verification says the same");
    }
}

#[tokio::test]
async fn a_command_without_calls_leaves_no_gap() {
    let memory = MemoryStore::new();
    let empty = || {
        script(|context, _| {
            Box::pin(async move {
                assert!(context.all::<Step>(&[]).await?.is_empty());
                context.call::<Step>("a".into()).await?;
                context.receive(&Filter::any(), None).await?;
                done("end")
            })
        })
    };
    let handlers = || Handlers::new().with::<Step>(capitals(&Counts::default()));
    let first = engine(memory.clone(), Workflows::new().with("w", empty()), handlers()).await;
    first.start(new_run("r", "w", "")).await.unwrap();
    until("it waits", async || shape(&memory, "r").await.ends_with(&["MessageAwaited".into()]))
        .await;
    first.stop().await;
    let second = engine(memory.clone(), Workflows::new().with("w", empty()), handlers()).await;
    second.signal(&id("r"), "go", Payload::null()).await.unwrap();
    assert_eq!(second.outcome(&id("r")).await.unwrap(), Outcome::Completed(Payload::of("end")));
    second.stop().await;
}

#[tokio::test]
async fn ending_too_early_is_a_difference() {
    let (_, stuck) = change(&["a", "b"], &["a"]).await;
    assert_eq!(
        stuck.as_deref(),
        Some(r#"diverged at position 2: recorded call step "b", asked end: completed"#)
    );
}

#[tokio::test]
async fn a_further_step_before_a_recorded_wait_is_a_difference() {
    let (_, stuck) = change(&["a"], &["a", "b"]).await;
    assert_eq!(
        stuck.as_deref(),
        Some(r#"diverged at position 2: recorded receive a message, asked call step "b""#)
    );
}

#[tokio::test]
async fn a_version_keeps_old_runs_on_the_old_path() {
    let memory = MemoryStore::new();
    let handlers = || Handlers::new().with::<Step>(capitals(&Counts::default()));
    let old = script(|context, _| {
        Box::pin(async move {
            context.call::<Step>("old".into()).await?;
            context.receive(&Filter::any(), None).await?;
            done("old")
        })
    });
    let first = engine(memory.clone(), Workflows::new().with("w", old), handlers()).await;
    first.start(new_run("old", "w", "")).await.unwrap();
    until("it waits", async || shape(&memory, "old").await.len() == 3).await;
    first.stop().await;

    let changed = script(|context, _| {
        Box::pin(async move {
            let path = if context.version("new-step", 1).await? == 0 { "old" } else { "new" };
            let output = context.call::<Step>(path.into()).await?;
            context.receive(&Filter::any(), None).await?;
            assert_eq!(
                context.version("new-step", 1).await?,
                u32::from(path == "new"),
                "the answer stays"
            );
            done(output)
        })
    });
    let second = engine(memory.clone(), Workflows::new().with("w", changed), handlers()).await;
    second.start(new_run("new", "w", "")).await.unwrap();
    for (run, expected) in [("old", "OLD"), ("new", "NEW")] {
        second.signal(&id(run), "go", Payload::null()).await.unwrap();
        let Ok(Outcome::Completed(output)) = second.outcome(&id(run)).await else {
            panic!("{run} completes")
        };
        assert_eq!(output.read::<String>().unwrap(), expected);
    }
    second.stop().await;
}

#[tokio::test]
async fn verification_finds_the_first_difference_without_any_effect() {
    let (memory, counts) = (MemoryStore::new(), Counts::default());
    let workflows = Workflows::new().with("w", calling(&["a", "b"]));
    let handlers = Handlers::new().with::<Step>(capitals(&counts));
    let engine = engine(memory.clone(), workflows.clone(), handlers).await;
    engine.start(new_run("r", "w", "")).await.unwrap();
    engine.outcome(&id("r")).await.unwrap();
    engine.stop().await;
    let history = memory.read(&id("r"), 0).await.unwrap();
    let performed = counts.all();

    let differs = |code: Workflows| {
        verify(&code, &id("r"), &history).unwrap().map(|diverged| diverged.to_string())
    };
    assert_eq!(differs(workflows), None);
    assert_eq!(
        differs(Workflows::new().with("w", calling(&["a", "c"]))).as_deref(),
        Some(r#"diverged at position 2: recorded call step "b", asked call step "c""#)
    );
    assert_eq!(
        differs(Workflows::new().with("w", calling(&["a", "b", "c"]))).as_deref(),
        Some(r#"diverged at position 3: recorded complete with "end", asked call step "c""#)
    );
    let other_end: Script<_> = script(|context, _| {
        Box::pin(async move {
            context.all::<Step>(&["a".into()]).await?;
            context.call::<Step>("b".into()).await?;
            done("another end")
        })
    });
    assert_eq!(
        differs(Workflows::new().with("w", other_end)).as_deref(),
        Some(
            r#"diverged at position 3: recorded complete with "end", asked complete with "another end""#
        )
    );
    assert_eq!(counts.all(), performed, "no handler was called");
    assert!(matches!(history.last().unwrap().kind, EventKind::RunCompleted { .. }));
}
