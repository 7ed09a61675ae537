import { sh, type Sh } from "../sh.ts";

/** How the node makes the request; the files are on the node. */
export interface HttpRequest {
  readonly insecure: boolean;
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Seconds that the request may take; BusyBox's wget gets no limit. */
  readonly limit: number;
}

/**
 * The shell function `http`: sets `status` to the HTTP status or “no answer: REASON”, and writes the body (with bash, the
 * whole answer) to $K_TMP/body. The function uses the first program on the node that can make the request.
 */
export function httpFunction(url: string, request: HttpRequest): Sh {
  const { insecure, certFile } = request;
  const wanted =
    certFile !== undefined ? "curl" : insecure || url.startsWith("http:") ? "curl or wget" : "curl or GNU wget";
  // BusyBox's wget checks no certificate, so it may speak TLS only with `insecure`.
  const plainInsecure = insecure && certFile === undefined;
  return sh`http() {
  rm -f "$K_TMP/body" "$K_TMP/head"
  if have curl; then
    ${curl(url, request)}
  elif ${certFile === undefined ? sh`have wget && wget --version >/dev/null 2>&1` : sh`false`}; then
    ${gnuWget(url, request)}
  elif ${url.startsWith("http:") || plainInsecure ? sh`have wget` : sh`false`}; then
    wget -q -S ${insecure ? sh`--no-check-certificate` : sh``} -O "$K_TMP/body" ${url} 2>"$K_TMP/head"
    ${statusLine}
  elif ${url.startsWith("http:") ? sh`have bash` : sh`false`}; then
    ${bash(url, request.limit)}
  else refuse TOOL_MISSING ${`this needs ${wanted} on the node (package curl)`}; fi
}`;
}

function curl(url: string, { insecure, caFile, certFile, keyFile, limit }: HttpRequest): Sh {
  const options = [
    ...(insecure ? ["-k"] : []),
    ...(caFile === undefined ? [] : ["--cacert", caFile]),
    ...(certFile === undefined ? [] : ["--cert", certFile]),
    ...(keyFile === undefined ? [] : ["--key", keyFile]),
  ];
  return sh`status=$(curl -q -sS --globoff --max-time ${limit} ${options} -o "$K_TMP/body" -w '%{http_code}' -- ${url} 2>"$K_TMP/head") ||
      status="no answer: $(sed 's/^curl: ([0-9]*) //;q' "$K_TMP/head")"`;
}

function gnuWget(url: string, { insecure, caFile, limit }: HttpRequest): Sh {
  const options = [
    ...(insecure ? ["--no-check-certificate"] : []),
    ...(caFile === undefined ? [] : [`--ca-certificate=${caFile}`]),
  ];
  return sh`wget --no-config -nv -S -t 1 -T ${limit} --max-redirect=0 --content-on-error ${options} -O "$K_TMP/body" -- ${url} 2>"$K_TMP/head"
    ${statusLine}`;
}

// Both wgets print the answer's header, indented; for an error BusyBox's prints the status only in its message.
const statusLine = sh`status=$(sed -n 's/.*HTTP\/[0-9.]* \([0-9][0-9][0-9]\).*/\1/p' "$K_TMP/head" | tail -n 1)
    [ -n "$status" ] || status="no answer: $(tail -n 1 "$K_TMP/head")"`;

function bash(url: string, limit: number): Sh {
  const { hostname, port, pathname, search, host } = new URL(url);
  // HTTP/1.0: the server ends the answer by closing the connection (RFC 1945).
  const request = `GET ${pathname}${search} HTTP/1.0\r\nHost: ${host}\r\n\r\n`;
  return sh`limit=$(have timeout && echo timeout ${Math.ceil(limit)})
    $limit bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf %s "$2" >&3 && cat <&3' ${hostname.replace(/^\[|\]$/g, "")} ${port || "80"} ${request} >"$K_TMP/body" 2>"$K_TMP/head"
    status=$(sed -n '1s/^HTTP\/[0-9.]* \([0-9][0-9][0-9]\).*/\1/p' "$K_TMP/body")
    [ -n "$status" ] || status="no answer: $(tail -n 1 "$K_TMP/head")"`;
}
