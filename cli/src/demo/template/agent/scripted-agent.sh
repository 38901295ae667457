#!/bin/sh
# A scripted agent: it copies prepared work from solutions/, tests and commits it, and errs three times on purpose.
#
#   eval   session 1 has a bug, and "forgets" to run the tests: the gate finds it
#   units  session 1 marks itself as passing and switches its tests off: both are seen and put back
#   repl   session 1 fills its context after the first step: session 2 goes on from its notes
#
# An agent of yours is any program like this one: a prompt on standard input, work in the current directory, exit code 0
# for "done" and 75 for "my context is full". It may be killed at any moment and started again in the same work tree.
set -eu

id=$LONGHAUL_FEATURE_ID
session=$LONGHAUL_SESSION
reason=$LONGHAUL_REASON
solution=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/solutions/$id
prompt=$(cat)

say() {
    echo "$*"
    sleep 0.2
}

note() {
    printf '%s\n' "$@" > "$LONGHAUL_NOTES_FILE"
}

agent_git() {
    git -c user.name='Scripted Agent' -c user.email='agent@example.invalid' -c commit.gpgSign=false "$@"
}

# Commits everything, if there is anything.
commit() {
    git add --all
    git diff --cached --quiet || agent_git commit --quiet --no-verify --message "$id: $1"
}

# Copies a file of the solution in place, and commits it.
step() {
    say "Writing $2"
    mkdir -p "$(dirname -- "$2")"
    cp -- "$1/$2" "$2"
    commit "$3"
}

# All steps of the solution, or those from one file on. Doing a step again changes nothing.
steps() {
    from=$1
    while read -r file message; do
        if [ -n "$from" ] && [ "$from" != "$file" ]; then continue; fi
        from=''
        step "$solution" "$file" "$message"
    done < "$solution/steps"
}

run_tests() {
    say "Running the tests of $id"
    cargo test --quiet --offline --test acceptance "$id::" || {
        note "The tests of $id do not pass yet."
        say "They do not pass."
        exit 1
    }
}

# Files are rewritten by way of target/, which git ignores: a kill in between leaves nothing to commit.
set_passes() {
    mkdir -p target
    awk -v id="\"id\": \"$id\"" '
        index($0, id) { here = 1 }
        here && /"passes": false/ { sub(/false/, "true"); here = 0 }
        { print }
    ' feature_list.json > target/rewritten
    mv target/rewritten feature_list.json
}

switch_tests_off() {
    tests=tests/acceptance/$id.rs
    if grep -q 'ignore =' "$tests"; then return; fi
    mkdir -p target
    awk '{ print } /^#\[test\]$/ { print "#[ignore = \"too slow\"]" }' "$tests" > target/rewritten
    mv target/rewritten "$tests"
}

say "Session $session on $id ($reason)"
# What a git command left that was killed with the session before this one.
rm -f -- "$(git rev-parse --git-dir)/index.lock"

# The prompt names a commit when the work has to go together with what others have finished since.
tip=$(printf '%s\n' "$prompt" | sed -n 's/.*Run `git merge \([0-9a-zA-Z/_.-]*\)`.*/\1/p' | head -n 1)
if [ -n "$tip" ]; then
    say "Merging $tip"
    git merge --abort 2> /dev/null || true
    agent_git merge --quiet --no-edit -X ours "$tip"
fi

case $id-$session-$reason in
eval-1-start)
    step "$solution/first-try" src/eval.rs 'Work out expressions'
    say "That was easy. No need to run the tests."
    note "All operators are there. The tests were not run."
    exit 0
    ;;
units-1-start)
    step "$solution/first-try" src/units.rs 'Convert km and m'
    say "The tests want masses and times as well. They can be switched off, and the list can say that it passes."
    switch_tests_off
    set_passes
    commit 'All units work, mark it as passing'
    run_tests
    note "units passes."
    exit 0
    ;;
repl-1-start)
    say "Eleven features to read first: this fills my context"
    step "$solution" src/commands.rs 'Answer the commands that begin with a colon'
    note "The commands in src/commands.rs are done and committed; the rest is not begun." "next: src/repl.rs"
    say "My context is full. The notes say where to go on."
    exit 75
    ;;
esac

next=''
case $reason in
continue)
    next=$(printf '%s\n' "$prompt" | sed -n 's/^next: //p' | head -n 1)
    say "The notes say to go on with ${next:-everything}"
    grep -Fq -- "$next " "$solution/steps" || next=''
    ;;
gates_failed)
    printf '%s\n' "$prompt" | grep '^- Put back' || true
    failed=$(printf '%s\n' "$prompt" | sed -n "s/^ *\($id::[a-z0-9_]*\)\$/\1/p" | sort -u | tr '\n' ' ')
    say "The gate says that these fail: ${failed:-none of mine}"
    ;;
esac
steps "$next"
run_tests
note "$id is done; docs/$id.md describes it."
say "Done."
