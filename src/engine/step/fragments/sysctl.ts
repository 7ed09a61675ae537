import { sh, type Sh } from "../sh.ts";

/** A key with its wanted value. */
export interface Sysctl {
  /** The key as the operator wrote it. */
  readonly key: string;
  /** The path below /proc/sys. */
  readonly path: string;
  /** The value, with single blanks. */
  readonly value: string;
}

/**
 * The path of a key (sysctl.d(5)): if the first separator is a slash, dots stay; if it is a dot, dots and slashes are
 * swapped. So `net.ipv4.conf.eth0/10.rp_filter` is net/ipv4/conf/eth0.10/rp_filter.
 */
export function sysctlPath(key: string): string {
  return /[./]/.exec(key)?.[0] === "." ? key.replaceAll(/[./]/g, (char) => (char === "." ? "/" : ".")) : key;
}

/** The key in a file: with dots as separators, unless a part of the path contains a dot. */
export function sysctlName(path: string): string {
  return path.includes(".") ? path : path.replaceAll("/", ".");
}

/**
 * The function `list_sysctls WHAT`. A key's present value comes from /proc/sys. Its value at boot comes from all files, in the
 * order of systemd-sysctl(8) and `sysctl --system`. /etc/sysctl.conf comes last without systemd; with systemd it counts
 * only through a link in sysctl.d.
 * `list_sysctls` prints lines of fields, separated by tabs. For `facts`: the key, and its value or “VALUE now, VALUE at boot by FILE” (without `by` if `file` sets it, or no file).
 * For `gaps`, as if `file` were in order already, keys that differ: the key, its path if the present value differs (else
 * -), and the later file that overrides it, with the value there (else -).
 */
export function sysctlFunction(file: string, wanted: readonly Sysctl[]): Sh {
  const lines = wanted.map(({ key, path, value }) => `${key}\t${path}\t${value}`);
  return sh`list_sysctls() {
  for folder in 1/etc 2/run 3/usr/local/lib 4/usr/lib 5/lib; do
    for found in "\${folder#?}"/sysctl.d/*.conf; do
      [ ! -e "$found" ] || printf '%s\t%s\n' "\${found##*/}" "$folder"
    done
  done | {
    cat
    printf '%s\t1/etc\n' ${file.slice(file.lastIndexOf("/") + 1)}
  } | sort | what=$1 file=${file} wanted=${lines.join("\n")} last=$([ -d /run/systemd/system ] || echo /etc/sysctl.conf) awk '
    function squeeze(text) { gsub(/[ \t]+/, " ", text); sub(/^ /, "", text); sub(/ $/, "", text); return text }
    function path_of(key) {
      sub(/^-/, "", key); key = squeeze(key)
      if (match(key, /[.\/]/) && substr(key, RSTART, 1) == ".") { gsub(/\./, "\001", key); gsub("/", ".", key); gsub("\001", "/", key) }
      return key
    }
    function read_file(name,   i, line, at, path) {
      if (name == ENVIRON["file"] && ENVIRON["what"] == "gaps") {
        for (i = 1; i <= count; i++) { boot[paths[i]] = values[i]; from[paths[i]] = name }
        return
      }
      while ((getline line <name) > 0) {
        sub(/^[ \t]+/, "", line)
        if (line ~ /^[#;]/ || !(at = index(line, "="))) continue
        path = path_of(substr(line, 1, at - 1))
        boot[path] = squeeze(substr(line, at + 1)); from[path] = name
      }
      close(name)
    }
    BEGIN {
      FS = "\t"
      count = split(ENVIRON["wanted"], lines, "\n")
      for (i = 1; i <= count; i++) { split(lines[i], field, "\t"); keys[i] = field[1]; paths[i] = field[2]; values[i] = field[3] }
    }
    # A file in an earlier folder replaces files of its name in later ones.
    $1 != before { read_file(substr($2, 2) "/sysctl.d/" $1); before = $1 }
    END {
      if (ENVIRON["last"] != "") read_file(ENVIRON["last"])
      for (i = 1; i <= count; i++) {
        path = paths[i]; line = ""; now = "absent"
        if ((getline line <("/proc/sys/" path)) > 0) now = squeeze(line)
        atBoot = (path in from) ? boot[path] : "not set"
        other = (path in from) && from[path] != ENVIRON["file"] ? from[path] : ""
        if (ENVIRON["what"] == "facts")
          print keys[i] "\t" (now == atBoot ? now : now " now, " atBoot " at boot" (other == "" ? "" : " by " other))
        else if (now != values[i] || atBoot != values[i])
          print keys[i] "\t" (now == values[i] ? "-" : path) "\t" (atBoot == values[i] ? "-" : other "\t" atBoot)
      }
    }'
}`;
}
