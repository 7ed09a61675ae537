import type { RemoteContent } from "../remote.ts";
import { Secret, secret } from "../secret.ts";
import { sh, shLines, type Sh } from "../sh.ts";

/** A file that the node downloads itself. */
export type Download = Omit<RemoteContent, "label">;

/** The programs of which the node needs one for the download, as messages name them. */
function needs({ url, headers, caFile }: Download): string {
  return url instanceof Secret || Object.keys(headers).length > 0
    ? "curl"
    : caFile
      ? "curl or GNU wget"
      : "curl or wget";
}

/**
 * sh condition: the node has a wget that can make the request. BusyBox's wget will do, although it checks no certificate:
 * the hash decides whether the content is accepted.
 */
function canWget(download: Download): Sh {
  const need = needs(download);
  return need === "curl" ? sh`false` : need === "curl or wget" ? sh`have wget` : sh`wget --version >/dev/null 2>&1`;
}

/** In dry runs: refuses if no program can fetch the file, or if curl gets no connection or a status of 404 or 410. */
export function foreseeDownload(download: Download): Sh {
  return sh`have curl || ${canWget(download)} || ${missing(download)}
if have curl; then
  ${withProxy(download)}
  answer=$(${curlInput(download)} | curl -q -sS -L --globoff -K - --proto '=http,https' -I -m 30 ${curlOptions(download)} -o /dev/null -w '%{http_code}' 2>"$K_TMP/err")
  # No name, no connection, no TLS (curl(1), exit codes). Other statuses do not count: a server may reject HEAD.
  case $?:$answer in
    [56]:* | 7:* | 35:* | 60:* | *:404 | *:410) ${failed(download, sh`$(sed 's/^curl: ([0-9]*) //' "$K_TMP/err") (status $answer)`)} ;;
  esac
fi`;
}

function missing(download: Download): Sh {
  return sh`{ nothing_done; refuse TOOL_MISSING ${`this needs ${needs(download)} on the node (package curl); with via: bastion it is sent from here`}; }`;
}

function failed({ url }: Download, why: Sh): Sh {
  return sh`{ nothing_done; refuse DOWNLOAD_FAILED ${url instanceof Secret ? "the URL" : url}" cannot be fetched: ${why}"; }`;
}

function withProxy({ proxy }: Download): Sh {
  return proxy === undefined
    ? sh``
    : sh`http_proxy=${proxy} https_proxy=${proxy}
export http_proxy https_proxy`;
}

function curlOptions({ caFile }: Download): readonly string[] {
  return caFile === undefined ? [] : ["--cacert", caFile];
}

/** Prints a configuration for curl's -K (curl(1)), which keeps it out of argv. */
function curlInput({ url, headers }: Download): Sh {
  const lines = [
    ["url", url] as const,
    ...Object.entries(headers).map(([name, value]) => ["header", withName(name, value)] as const),
  ];
  return sh`{
${shLines(lines.map(([option, value]) => sh`printf '%s = "%s"\n' ${option} ${value instanceof Secret ? secret(escaped(value.reveal())) : escaped(value)}`))}
}`;
}

function withName(name: string, value: string | Secret): string | Secret {
  return value instanceof Secret ? secret(`${name}: ${value.reveal()}`) : `${name}: ${value}`;
}

function escaped(text: string): string {
  return text.replaceAll(/["\\]/g, String.raw`\$&`);
}

/**
 * Sets `part` to a file with the downloaded content, or refuses. An interrupted download continues from its part in the
 * state folder, since the hash proves the result. Apply may change nothing before: the refusals call `nothing_done`.
 */
export function fetchTo(download: Download): Sh {
  const { url, sha256, headers } = download;
  const hasWantedHash = sh`sum=$(sha256sum <"$part" 2>/dev/null) && [ "\${sum%% *}" = ${sha256} ]`;
  return sh`have curl || ${canWget(download)} || ${missing(download)}
${withProxy(download)}
parts=$K_STATE/downloads
# A step with runAs cannot write to the state folder.
[ -z "$k_as" ] || parts=$K_TMP
[ -d "$parts" ] || mkdir -m 700 "$parts" || exit 1
find "$parts" -type f -mtime +7 -exec rm -f {} +
part=$parts/${sha256}
fetch() {
  if have curl; then
    ${Object.keys(headers).length === 0 ? sh`${curlInput(download)} | curl -q -sS -f -L --globoff -K - --proto '=http,https' --connect-timeout 60 -C - ${curlOptions(download)} -o "$part" 2>"$K_TMP/err"` : curlWithHeaders(download)}
  ${url instanceof Secret || needs(download) === "curl" ? sh`` : wget(url, download)}
  fi
}
umask 077
came=0
while :; do
  [ ! -e "$part" ] || { ! { ${hasWantedHash}; } || break; came=$(stat -c %s "$part"); }
  fetch
  status=$?
  if [ "$status" = 0 ] && ${hasWantedHash}; then break; fi
  # The earlier part may be of another content, or the server may know no ranges.
  if [ "$came" != 0 ] && case $status in 0 | 8 | 22 | 33) ;; *) grep -q ' 416' "$K_TMP/err" ;; esac; then
    note "starting anew: what came before does not fit"
    rm -f "$part"
    came=0
    continue
  fi
  [ "$status" = 0 ] || ${failed(download, sh`$(sed 's/^curl: ([0-9]*) //' "$K_TMP/err")`)}
  rm -f "$part"
  nothing_done
  refuse DOWNLOAD_DIFFERS ${`the content of ${url instanceof Secret ? "the URL" : url} has another SHA-256`}"$K_NL""wanted "${sha256}"$K_NL""found  \${sum%% *}"
done`;
}

/** Downloads by curl with headers, which go to the URL's own server, never to the target of a redirection. */
function curlWithHeaders(download: Download): Sh {
  return sh`to=$(${curlInput(download)} | curl -q -sS --globoff -K - --proto '=http,https' --connect-timeout 60 -r 0-0 ${curlOptions(download)} -o /dev/null -w '%{redirect_url}' 2>"$K_TMP/err") || return
    case $to in
      '') ${curlInput(download)} ;;
      *) printf 'url = "%s"\n' "$(printf %s "$to" | sed 's/["\\]/\\&/g')" ;;
    esac | curl -q -sS -f \${to:+-L} --globoff -K - --proto '=http,https' --connect-timeout 60 -C - ${curlOptions(download)} -o "$part" 2>"$K_TMP/err"`;
}

function wget(url: string, { caFile }: Download): Sh {
  return sh`elif wget --version >/dev/null 2>&1; then
    wget --no-config -nv -t 1 -T 60 -c ${caFile === undefined ? sh`` : sh`--ca-certificate=${caFile}`} -O "$part" -- ${url} 2>"$K_TMP/err"
  ${caFile === undefined ? sh`else wget -q -c -O "$part" ${url} 2>"$K_TMP/err"` : sh``}`;
}
