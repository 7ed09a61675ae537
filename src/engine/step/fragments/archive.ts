import type { Blob } from "../blob.ts";
import type { Tool } from "../define.ts";
import { sh, type Sh } from "../sh.ts";

export const archiveFormats = ["tar.gz", "tar.xz", "tar.zst", "tar", "zip"] as const;
export type ArchiveFormat = (typeof archiveFormats)[number];

export function archiveFormatOf(name: string): ArchiveFormat | undefined {
  return archiveFormats.find((format) => name.replace(/\.t([gx]z|zst)$/, ".tar.$1").endsWith(`.${format}`));
}

export function archiveTools(format: ArchiveFormat): readonly Tool[] {
  const unpackers = {
    "tar.gz": { command: "gzip", package: "gzip" },
    "tar.xz": { command: "xz", package: "xz-utils" },
    "tar.zst": { command: "zstd", package: "zstd" },
    zip: { command: "unzip", package: "unzip" },
  };
  const tar = { command: "tar", package: "tar" };
  return format === "zip" ? [unpackers.zip] : format === "tar" ? [tar] : [unpackers[format], tar];
}

/** Prints the archive's tar to stdout, and makes the file $K_TMP/cut if the unpacking program fails. */
function unpack(format: Exclude<ArchiveFormat, "zip">, from: Blob | Sh): Sh {
  const program = { "tar.gz": sh`gzip -dc`, "tar.xz": sh`xz -dc`, "tar.zst": sh`zstd -q -dc`, tar: sh`cat` }[format];
  // A pipe has the status of its last program, and tar may accept a truncated archive.
  return sh`{ ${program} <${from} 2>>"$K_TMP/err" || : >"$K_TMP/cut"; }`;
}

/** Pipes the unpacked bytes to `tar`; cat reads the bytes after the archive's end, so that no program sees a closed pipe. */
function tarOver(format: Exclude<ArchiveFormat, "zip">, from: Blob | Sh, tar: Sh): Sh {
  return sh`${unpack(format, from)} | { ${tar} && cat >/dev/null; }`;
}

/**
 * Writes two lists that correspond line by line: $K_TMP/names, and $K_TMP/lines, whose lines begin with type and mode as
 * ls -l prints them. Error messages go to $K_TMP/err.
 */
function listEntries(format: ArchiveFormat, from: Blob | Sh): Sh {
  return format === "zip"
    ? sh`unzip -Z1 ${from} >"$K_TMP/names" 2>"$K_TMP/err" && unzip -Z -s ${from} | sed -e '1,2d' -e '$d' >"$K_TMP/lines"`
    : sh`rm -f "$K_TMP/cut" "$K_TMP/err" && ${tarOver(format, from, sh`tar -tf - >"$K_TMP/names" 2>>"$K_TMP/err"`)} &&
  ${tarOver(format, from, sh`tar -tvf - >"$K_TMP/lines" 2>/dev/null`)} && [ ! -e "$K_TMP/cut" ]`;
}

/**
 * Sets `bad` to the entries that would leave the target folder, independently of the unpacking program (S-21).
 * BusyBox's tar lists names without a leading / or .., and reports that as an error message. A hard link's line ends in
 * its target; a file with such a name counts as a hard link.
 */
const findUnsafe = sh`bad=$(awk '
  function tell(why) { if (shown++ < 20) print it ": " why }
  NR == FNR { names[FNR] = $0; count = FNR; next }
  {
    kind = substr($0, 1, 1)
    it = names[FNR]
    sub(/^(\.\/)+/, "", it)
    sub(/\/+$/, "", it)
    if (it ~ /^\// || "/" it "/" ~ /\/\.\.\//) tell("leads out of the folder")
    if (kind !~ /^[-dlh]$/) tell("neither a file, a folder nor a link")
    if (kind != "d" && (substr($0, 4, 1) ~ /[sS]/ || substr($0, 7, 1) ~ /[sS]/)) tell("setuid or setgid")
    if (kind != "d" && kind != "l" && $0 ~ /( link to | -> )(\/|(.*\/)?\.\.(\/|$))/) tell("a hard link that leads out")
    if (kind == "l") links[it] = 1
    paths[FNR] = it
  }
  END {
    if (count != FNR) print "names with line breaks"
    for (i = 1; i <= FNR; i++) {
      it = paths[i]
      for (above = it; match(above, /\/[^\/]*$/); )
        if ((above = substr(above, 1, RSTART - 1)) in links) tell("beneath a link")
    }
  }' "$K_TMP/names" "$K_TMP/lines") || exit 1
case $(cat "$K_TMP/err") in *[Rr]emoving\ leading*) bad="names that lead out of the folder$K_NL$bad" ;; esac`;

interface Unpacking {
  readonly format: ArchiveFormat;
  readonly from: Blob | Sh;
  /** The archive's name in errors. */
  readonly name: string;
  readonly strip: number;
}

/**
 * Unpacks the archive in the current folder, which must be private, or refuses with ARCHIVE_INVALID, ARCHIVE_UNSAFE or
 * TOOL_MISSING. Sets `tree` to the folder below `strip` levels, and enters it. All entries belong to root, and others
 * cannot write to them.
 */
export function unpackHere({ format, from, name, strip }: Unpacking): Sh {
  const tree =
    format === "zip"
      ? sh`unzip -qq ${from} -d ./t </dev/null 2>"$K_TMP/err"`
      : sh`${tarOver(format, from, sh`(cd ./t && tar -x -o -f -) 2>>"$K_TMP/err"`)} && [ ! -e "$K_TMP/cut" ]`;
  return sh`${listEntries(format, from)} || {
${format === "zip" ? sh`! grep -q BusyBox "$K_TMP/err" || refuse TOOL_MISSING "zip needs the unzip of Info-ZIP (package unzip): BusyBox's does not tell what an archive holds"` : sh``}
  refuse ARCHIVE_INVALID ${`${name} cannot be read as ${format}`}"$K_NL$(cat "$K_TMP/err")"
}
${findUnsafe}
[ -z "$bad" ] || refuse ARCHIVE_UNSAFE ${`${name} is not unpacked: it holds entries that would leave its folder, or are more than files`}"$K_NL$bad"
mkdir -m 755 ./t && ${tree} || refuse ARCHIVE_INVALID ${`${name} cannot be unpacked`}"$K_NL$(cat "$K_TMP/err")"
tree=./t level=0
cd ./t || exit 1
while [ "$level" -lt ${strip} ]; do
  set -- ./* ./.[!.]* ./..?*
  only=
  for entry; do
    [ -e "$entry" ] || [ -L "$entry" ] || continue
    [ -z "$only" ] && [ -d "$entry" ] && [ ! -L "$entry" ] && only=$entry && continue
    refuse ARCHIVE_INVALID ${`strip: ${strip} is too much for ${name}: a folder has to hold nothing but one folder`}"$K_NL$entry"
  done
  [ -n "$only" ] || refuse ARCHIVE_INVALID ${`strip: ${strip} is too much for ${name}: nothing is left`}
  cd "$only" || exit 1
  tree=$tree/\${only#./}
  level=$((level + 1))
done
find . -type l >"$K_TMP/links" || exit 1
while IFS= read -r link; do
  to=$(readlink -- "$link") || exit 1
  # depth: the folders above the link; below 0 its target leads out.
  depth=-1 rest=\${link#./}/
  while [ -n "$rest" ]; do depth=$((depth + 1)) rest=\${rest#*/}; done
  case $to in /*) depth=-1 ;; esac
  rest=$to/
  while [ -n "$rest" ] && [ "$depth" -ge 0 ]; do
    case \${rest%%/*} in '' | .) ;; ..) depth=$((depth - 1)) ;; *) depth=$((depth + 1)) ;; esac
    rest=\${rest#*/}
  done
  [ "$depth" -ge 0 ] || refuse ARCHIVE_UNSAFE ${`${name} is not unpacked: it holds a link that leads out of its folder`}"$K_NL$link -> $to"
done <"$K_TMP/links"
find . ! -type l -exec chmod u+rwX,go-w {} + && find . -type d -exec chmod g-s,u+x {} + || exit 1`;
}
