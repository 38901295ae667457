#!/bin/sh
# An agent for the tests. It works in small steps and commits each of them: a session that is killed costs one step at
# most, and one that is begun again goes on from what is committed.
set -eu
id=$LONGHAUL_FEATURE_ID
file=$id.txt
steps=1 pause=0 habit=plain
if [ -f "plan/$id" ]; then . "./plan/$id"; fi

# The time of the mark says when this session began; a session that comes to its end gives it another name.
mark=$(mktemp "$LONGHAUL_TEST_JOURNAL/XXXXXXXX")
echo "$LONGHAUL_RUN_ID $LONGHAUL_SESSION $LONGHAUL_REASON" >"$mark"

end() {
    echo "$file has $(wc -l <"$file") lines" >"$LONGHAUL_NOTES_FILE"
    mv "$mark" "$mark.done"
    exit "$1"
}

commit() {
    git add --all
    git diff --cached --quiet || git -c user.name=Agent -c user.email=agent@example.org commit --quiet --message "$1"
}

if [ "$habit" = tampers ] && [ "$LONGHAUL_SESSION" = 1 ]; then
    sed 's/"passes": false/"passes": true/' feature_list.json >feature_list.new
    mv feature_list.new feature_list.json
    commit "Say that everything passes"
    sleep 600 >/dev/null 2>&1 &
fi

step=$(grep -c '^step' "$file" 2>/dev/null || true)
step=${step:-0}
while :; do
    if [ "$habit" = fills ] && [ "$step" = 1 ] && [ "$LONGHAUL_REASON" = start ]; then end 75; fi
    [ "$step" -lt "$steps" ] || break
    sleep "$pause"
    step=$((step + 1))
    echo "step $step" >>"$file"
    commit "$id: step $step"
    echo "step $step of $steps"
    # A test has the agent wait here as long as it needs.
    while [ -e "$LONGHAUL_TEST_JOURNAL/../hold-$id" ]; do sleep 0.05; done
done

if [ "$habit" = obeys ] && ! grep -q 'From a person: finish it' "$LONGHAUL_PROMPT_FILE"; then habit=never; fi
if [ "$habit" = never ] || { [ "$habit" = repairs ] && [ "$LONGHAUL_REASON" != gates_failed ]; }; then
    grep -q -e almost -e finished "$file" || echo almost >>"$file"
elif ! grep -q finished "$file"; then
    grep -v almost "$file" >"$file.new"
    echo finished >>"$file.new"
    mv "$file.new" "$file"
fi
commit "$id: finish"
end 0
