import { sh, type Sh } from "../sh.ts";

/** A locale as `locale -a` lists it: de_DE.UTF-8 is de_DE.utf8 there. */
function listedAs(locale: string): string {
  const [, name = "", charset = "", modifier = ""] = /^([^.@]*)(\.[^@]*)?(@.*)?$/.exec(locale) ?? [];
  const short = charset.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return `${name}${short === "" ? "" : `.${short}`}${modifier}`;
}

/**
 * Sets `file` to the file of the system's settings (locale.conf(5) on Debian 13 and others), and `supported` to the file
 * that lists all possible locales. Sets `there` to the needed locales that are generated, `missing` to the others.
 */
export function readLocales(needed: readonly string[]): Sh {
  const pairs = needed.map((locale) => `${listedAs(locale)}=${locale}`);
  return sh`file=/etc/default/locale supported=/usr/share/i18n/SUPPORTED
if [ -L "$file" ] || [ ! -e /etc/debian_version ]; then file=/etc/locale.conf; fi
# Older systems list C.UTF-8 by that name.
listed=$K_NL$(locale -a 2>/dev/null | sed 's/UTF-8/utf8/')$K_NL
there= missing=
for pair in ${pairs}; do
  case $listed in
    *"$K_NL\${pair%%=*}$K_NL"*) there="$there\${there:+ }\${pair#*=}" ;;
    *) missing="$missing\${missing:+ }\${pair#*=}" ;;
  esac
done`;
}

/**
 * Adds each `missing` locale to locale.gen(5), or uncomments its line there, and generates it; generated locales stay.
 */
export function generateLocales(path: string): Sh {
  return sh`if [ -n "$missing" ]; then
  [ -f ${path} ] || put_file /dev/null ${path} 0644 - - || exit 1
  missing=$missing awk '
    BEGIN { count = split(ENVIRON["missing"], names, " "); for (i = 1; i <= count; i++) wanted[names[i]] = 1 }
    NR == FNR { if ($1 in wanted && !($1 in entry)) entry[$1] = $1 " " $2; next }
    {
      line = $0; sub(/^[ \t]*#[ \t]*/, "", line); sub(/[ \t]+$/, "", line)
      split(line, field, /[ \t]+/)
      if (field[1] in wanted && line == entry[field[1]]) { if (!(line in written)) print line; written[line] = 1 } else print
    }
    END { for (i = 1; i <= count; i++) if (!(entry[names[i]] in written)) print entry[names[i]] }
  ' "$supported" ${path} >"$K_TMP/gen" && put_file "$K_TMP/gen" ${path} - - - || exit 1
  locale-gen --keep-existing || exit 1
fi`;
}
