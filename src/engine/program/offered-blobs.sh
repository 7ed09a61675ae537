# For a step that finds out itself which of many blobs it lacks (POSIX sh; dash, bash, BusyBox, mksh), such as the paths
# of a Nix closure. Follows step.sh, whose k_blobs it replaces, and precedes the texts of the step.

# k_blobs: runs the text `asks` once, which prints a line for each blob that apply wants: NAME BYTES and words for apply. The
# runner brings them in portions (exit status 20; their names are in blobs/KEY), and apply runs once for each portion. Portions
# bound the run's folder, and the bytes that a cut run loses. For apply: $k_portion_file = the file with the lines of its
# portion; $k_more = 1: another portion follows.
k_blobs() {
  [ -z "$k_looks" ] || exit 20
  for k_blob in $k_late; do [ -e "$K_RUN/blobs/$k_blob" ] || exit 20; done
  k_list=$K_RUN/blobs/$k_key k_portion_file=$K_RUN/blobs/$k_key.now
  [ -d "$K_RUN/blobs" ] || mkdir "$K_RUN/blobs" || exit 13
  if [ ! -e "$k_list.all" ]; then
    k_text asks >"$k_list.new"
    k_status=$?
    k_read '' || exit 13
    [ "$k_status" = 0 ] && mv -f "$k_list.new" "$k_list.all" || exit 13
  fi
  while k_portion; do
    for k_watcher in $k_owes; do : >"$K_STATE/owed/$k_watcher" || exit 13; done
    printf '%s apply %s apply\n' "$k_nonce" "$k_key" >&5
    k_text apply
    k_status=$?
    k_read '' || k_status=99
    printf '%s rc %s %s\n' "$k_nonce" "$k_key" "${k_code:-$k_status}" >&5
    [ "$k_status" = 0 ] || exit 13
    tail -n +$((k_count + 1)) "$k_list.all" >"$k_list.new" && mv -f "$k_list.new" "$k_list.all" || exit 13
    (cd "$K_RUN/blobs" && rm -f $(sed 's/ .*//' "$k_portion_file"))
  done
}

# k_portion: prepares the next portion; false for the last one, also an empty one, which k_change applies. A portion has at
# most a thousand blobs of 64 MiB together, or one larger blob.
k_portion() {
  k_count=0 k_kb=0 k_names= k_more=
  while read -r k_blob k_size _; do
    k_kb=$((k_kb + k_size / 1024))
    if [ "$k_count" != 0 ] && { [ "$k_kb" -gt 65536 ] || [ "$k_count" = 1000 ]; }; then k_more=1 && break; fi
    k_count=$((k_count + 1))
    [ -e "$K_RUN/blobs/$k_blob" ] || k_names="$k_names $k_blob"
  done <"$k_list.all"
  if [ -n "$k_names" ]; then
    printf '%s\n' "$k_names" >"$k_list" || exit 13
    exit 20
  fi
  head -n "$k_count" "$k_list.all" >"$k_portion_file" || exit 13
  [ -n "$k_more" ]
}
