import { createHmac, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { parseHostKey, type HostKey, type TrustedKeys } from "./host-key.ts";

/** One line of a known_hosts file (sshd(8)) that could be understood. */
export interface KnownHost {
  readonly hosts: string;
  readonly revoked: boolean;
  readonly key: HostKey;
}

export interface KnownHosts {
  readonly file: string;
  readonly entries: readonly KnownHost[];
  /** `FILE:LINE: reason` for each line that was passed over. */
  readonly ignored: readonly string[];
}

/** Parses the text of a known_hosts file. Never throws: an unknown line trusts no key, and is listed in `ignored`. */
export function parseKnownHosts(text: string, file: string): KnownHosts {
  const entries: KnownHost[] = [];
  const ignored: string[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const fields = line.trim().split(/\s+/);
    if (fields[0] === "" || fields[0]?.startsWith("#")) continue;
    const skip = (reason: string) => ignored.push(`${file}:${index + 1}: ${reason}`);
    const marker = fields[0]?.startsWith("@") ? fields.shift() : undefined;
    const [hosts, type, base64] = fields;
    const key = parseHostKey(`${type ?? ""} ${base64 ?? ""}`);
    if (marker === "@cert-authority") skip("host certificates (@cert-authority) are not supported");
    else if (marker !== undefined && marker !== "@revoked") skip(`unknown marker ${marker}`);
    else if (hosts === undefined || key === undefined) skip("not a line of known_hosts, see sshd(8)");
    else entries.push({ hosts, revoked: marker === "@revoked", key });
  }
  return { file, entries, ignored };
}

/** Reads a known_hosts file. A missing file has no entries; for an unreadable one, `ignored` has the reason. */
export async function readKnownHosts(file: string): Promise<KnownHosts> {
  try {
    return parseKnownHosts(await readFile(file, "utf8"), file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { file, entries: [], ignored: code === "ENOENT" ? [] : [`${file}: cannot be read (${code ?? "error"})`] };
  }
}

/** The entries of a host in the files. With another port than 22 its name there is `[host]:port`, as for OpenSSH. */
export function lookUpKnownHost(files: readonly KnownHosts[], address: string, port: number): TrustedKeys {
  const name = port === 22 ? address : `[${address}]:${port}`;
  const found = files.map((known) => ({
    known,
    entries: known.entries.filter(({ hosts }) => matchesHosts(hosts, name)),
  }));
  const all = found.flatMap(({ entries }) => entries);
  const keys = all.filter(({ revoked }) => !revoked).map(({ key }) => key);
  const source = found
    .filter(({ entries }) => entries.some(({ revoked }) => !revoked))
    .map(({ known }) => known.file)
    .join(", ");
  return {
    keys,
    revoked: all.filter(({ revoked }) => revoked).map(({ key }) => key),
    source: source === "" ? files.map(({ file }) => file).join(", ") : source,
    ignored: files.flatMap(({ ignored }) => ignored),
  };
}

/** Whether a host field names the host: `|1|salt|hash`, or patterns with `*`, `?` and `!`, separated by commas. */
export function matchesHosts(hosts: string, name: string): boolean {
  const wanted = name.toLowerCase();
  if (hosts.startsWith("|")) return matchesHash(hosts, wanted);
  let matched = false;
  for (const pattern of hosts.toLowerCase().split(",")) {
    const negated = pattern.startsWith("!");
    if (!matchesPattern(negated ? pattern.slice(1) : pattern, wanted)) continue;
    if (negated) return false;
    matched = true;
  }
  return matched;
}

function matchesHash(field: string, name: string): boolean {
  const [, version, salt, hash] = field.split("|");
  if (version !== "1" || !salt || !hash) return false;
  const expected = Buffer.from(hash, "base64");
  // OpenSSH's format `|1|` is HMAC-SHA1; the hash only hides the name, and authenticates nothing.
  const actual = createHmac("sha1", Buffer.from(salt, "base64")).update(name).digest();
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}

/** `*` stands for any text, `?` for one character; without exponential backtracking, since others can have written the patterns. */
function matchesPattern(pattern: string, text: string): boolean {
  let [p, t, star, resume] = [0, 0, -1, 0];
  while (t < text.length) {
    if (pattern[p] === "*") [star, resume] = [p++, t];
    else if (p < pattern.length && (pattern[p] === "?" || pattern[p] === text[t])) [p, t] = [p + 1, t + 1];
    else if (star >= 0) [p, t] = [star + 1, ++resume];
    else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}
