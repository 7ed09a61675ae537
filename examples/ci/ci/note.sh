#!/bin/sh
# Writes a file as a note to GitLab's merge request, if there is one and the job was given a token for it.
set -eu
[ -n "${KCORE_NOTES_TOKEN:-}" ] && [ -n "${CI_MERGE_REQUEST_IID:-}" ] && [ -f "$1" ] || exit 0
printf 'header = "PRIVATE-TOKEN: %s"\n' "$KCORE_NOTES_TOKEN" |
  curl --config - --silent --show-error --fail --output /dev/null --data-urlencode "body@$1" \
    "$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
