import { rawSh } from "../sh.ts";

/**
 * Reads sshd's file of keys (sshd(8), AUTHORIZED_KEYS FILE FORMAT) on stdin, and the wanted keys from "$tmp/keys". Each
 * line of "$tmp/keys" has fields separated by tabs: base64, fingerprint, the wanted line, and `any` if any comment will do.
 */
const common = `
  BEGIN {
    FS = "\\n"
    while ((getline line < (ENVIRON["tmp"] "/keys")) > 0) {
      split(line, part, "\\t")
      order[++count] = part[1]; print_as[part[1]] = part[2]; whole[part[1]] = part[3]; any[part[1]] = part[4]
    }
  }
  function blanks(text) { sub(/^[ \\t]+/, "", text); return text }
  # Sets options, type, key and comment; false for a line without a key.
  function parse(text,   i, quoted, c) {
    text = blanks(text); options = ""
    if (text == "" || text ~ /^#/) return 0
    if (text !~ /^(ssh-|ecdsa-|sk-)[a-z0-9@.-]*[ \\t]/) {
      for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\\\\" && substr(text, i + 1, 1) == "\\"") i++
        else if (c == "\\"") quoted = !quoted
        else if (!quoted && (c == " " || c == "\\t")) break
      }
      options = substr(text, 1, i - 1); text = blanks(substr(text, i))
    }
    match(text, /^[^ \\t]*/); type = substr(text, 1, RLENGTH); text = blanks(substr(text, RLENGTH + 1))
    match(text, /^[^ \\t]*/); key = substr(text, 1, RLENGTH); comment = blanks(substr(text, RLENGTH + 1))
    sub(/[ \\t]+$/, "", comment)
    return 1
  }
  function described(with_comment) { return (options == "" ? "" : options " ") type (with_comment && comment != "" ? " " comment : "") }`;

/**
 * Prints a line for each wanted key: its fingerprint, and its present options, type and comment, or `absent`. The last
 * line is `others` with the options, types and comments of the other keys, or `none`.
 */
export const findKeys = rawSh(`'${common}
  parse($0) {
    if (key in whole) { before = key in at ? at[key] " + " : ""; at[key] = before described(any[key] == "") }
    else others = others (others == "" ? "" : ", ") described(1)
  }
  END {
    for (i = 1; i <= count; i++) print print_as[order[i]], (order[i] in at ? at[order[i]] : "absent")
    print "others", (others == "" ? "none" : others)
  }'`);

/** Prints the new file: `wanted` is present or absent, for all wanted keys; `exclusive` removes all other keys. */
export const editKeys = rawSh(`'${common}
  !parse($0) { print; next }
  key in whole {
    if (ENVIRON["wanted"] == "present" && !(key in done)) print whole[key] (any[key] != "" && comment != "" ? " " comment : "")
    done[key]; next
  }
  ENVIRON["exclusive"] == ""
  END { for (i = 1; i <= count; i++) if (ENVIRON["wanted"] == "present" && !(order[i] in done)) print whole[order[i]] }'`);
