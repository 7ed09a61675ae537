import type { SourcePosition } from "#errors/problem.ts";
import type { Fields, Found, Hop } from "./found.ts";
import { asNumber } from "./plain-values.ts";

/** Words as a shell splits them (quotes, backslashes), without expanding anything. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  for (const [word] of text.matchAll(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\]|["'])+/g))
    words.push(
      word.replaceAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/g, (_, double: string, single: string, one: string) => {
        return double?.replaceAll(/\\(["\\$`])/g, "$1") ?? single ?? one;
      }),
    );
  return words;
}

/** The hops of a ProxyJump: `[user@]host[:port]` or `ssh://…`, by commas; undefined for any other text. */
export function hopsOf(text: string): Hop[] | undefined {
  const hops = text.split(",").map((part): Hop | undefined => {
    const pattern = /^(?:ssh:\/\/)?(?:([^@\s]+)@)?(?:\[([^\]]+)\]|([^:@\s/%]+))(?::(\d+))?\/?$/;
    const [, user, six, name, port] = pattern.exec(part.trim()) ?? [];
    const host = six ?? name;
    if (host === undefined) return undefined;
    return { host, ...(user !== undefined && { user }), ...(port !== undefined && { port: Number(port) }) };
  });
  return hops.includes(undefined) ? undefined : (hops as Hop[]);
}

/** Options of ssh(1) that take a value. */
const optionsWithValue = /^-[BbcDEeFIiJLlmOoPpQRSWw]$/;

/**
 * The hops of an older form of a jump host (ssh_config(5), ProxyCommand): `ssh -W %h:%p bastion`, or `ssh bastion nc %h %p`. Undefined for any
 * other command.
 */
export function hopsOfCommand(command: string): Hop[] | undefined {
  const words = splitWords(command);
  if (!/(^|\/)ssh$/.test(words[0] ?? "") || !command.includes("%h")) return undefined;
  const options = new Map<string, string>();
  let at = 1;
  for (; words[at]?.startsWith("-") === true; at++) {
    const word = words[at] ?? "";
    if (optionsWithValue.test(word)) options.set(word, words[++at] ?? "");
    else if (/^-[Wilp]./.test(word)) options.set(word.slice(0, 2), word.slice(2));
  }
  const target = words[at] ?? "";
  const after = words.slice(at + 1);
  // Options may follow the host, too.
  for (let next = 0; next < after.length; next++)
    if (optionsWithValue.test(after[next] ?? "")) options.set(after[next] ?? "", after[++next] ?? "");
  if (!options.has("-W") && !/\b(nc|ncat|netcat)\b/.test(after.join(" "))) return undefined;
  const [hop] = hopsOf(target) ?? [];
  if (!hop || options.has("-F")) return undefined;
  const [user, port, identityFile] = [options.get("-l"), options.get("-p"), options.get("-i")];
  const before = options.has("-J") ? hopsOf(options.get("-J") ?? "") : [];
  return (
    before && [
      ...before,
      { ...hop, ...(user && { user }), ...(port && { port: Number(port) }), ...(identityFile && { identityFile }) },
    ]
  );
}

/** The reasons why options are left out: kcore does not need them, or does their work itself. */
const reasons: readonly [RegExp, string][] = [
  [
    /^(stricthostkeychecking|userknownhostsfile|globalknownhostsfile|updatehostkeys|checkhostip|verifyhostkeydns|nohostauthenticationforlocalhost|visualhostkey|hashknownhosts|hostkeyalias|loglevel)$/,
    "a host's key is always verified: kcore roster trust NODE",
  ],
  [
    /^(passwordauthentication|preferredauthentications|numberofpasswordprompts|kbdinteractiveauthentication|batchmode|challengeresponseauthentication|gssapi.*|hostbased.*|pubkeyauthentication|certificatefile|identityagent|pkcs11provider|addkeystoagent|usekeychain|identitiesonly|enablesshkeysign)$/,
    "kcore logs in by the identity file, else by the agent and the usual files",
  ],
  [
    /^(hostkeyalgorithms|pubkeyaccepted.*|kexalgorithms|ciphers?|macs|casignaturealgorithms|hostkeyalgorithm|requiredrsasize|rekeylimit|protocol)$/,
    "kcore has its own list of algorithms",
  ],
  [
    /^(localforward|remoteforward|dynamicforward|gatewayports|exitonforwardfailure|clearallforwardings|permitremoteopen|forwardagent|forwardx11.*|tunnel.*|xauthlocation|stdinnull|streamlocal.*)$/,
    "kcore forwards nothing",
  ],
  [
    /^(control.*|compression.*|serveralive.*|tcpkeepalive|connect.*|ipqos|obscurekeystroketiming|addressfamily|bind.*|canonical.*|fallbacklegacycanonicalization)$/,
    "kcore keeps its connections itself",
  ],
  [
    /^(requesttty|remotecommand|localcommand|permitlocalcommand|sendenv|setenv|escapechar|enableescapecommandline|forkafterauthentication|sessiontype|knownhostscommand|ignoreunknown|syslogfacility|tag|proxyusefdpass|logverbose|usersh|shareprivatekeyagent)$/,
    "kcore runs no command, terminal or environment of your client's",
  ],
];

/** Why an option of ssh_config(5) is left out. */
export function reasonFor(option: string): string {
  const found = reasons.find(([pattern]) => pattern.test(option.toLowerCase()));
  return found?.[1] ?? "a roster has no such option";
}

/** Sets the field for an option `Name=value` of ssh; reports an option that a roster lacks. */
export function takeOption(found: Found, fields: Fields, name: string, value: string, at: SourcePosition): void {
  const option = name.toLowerCase();
  if (option === "user") found.put(fields, "user", value, at, name);
  else if (option === "port") found.put(fields, "port", asNumber(value), at, name);
  else if (option === "identityfile") found.put(fields, "identityFile", value, at, name);
  else if (option === "proxyjump" || option === "proxycommand") {
    if (value.toLowerCase() === "none") return;
    const hops = option === "proxyjump" ? hopsOf(value) : hopsOfCommand(value);
    if (hops) found.routes.set(fields, { at, hops });
    else found.leaveOut(at, `${name} ${value}`, "only hops over SSH are known: jump: [HOST]");
  } else found.leaveOut(at, `${name} ${value}`.trim(), reasonFor(option));
}

/** Reads the words of `ansible_ssh_common_args`: `-o Name=value`, `-J hops`, `-i file` and the like. */
export function takeArguments(found: Found, fields: Fields, text: string, at: SourcePosition): void {
  const words = splitWords(text);
  for (let next = 0; next < words.length; next++) {
    const word = words[next] ?? "";
    const letter = word.slice(0, 2);
    const names: Readonly<Record<string, string>> = {
      "-J": "ProxyJump",
      "-i": "IdentityFile",
      "-p": "Port",
      "-l": "User",
    };
    if (letter !== "-o" && names[letter] === undefined) {
      const value = optionsWithValue.test(word) ? ` ${words[++next] ?? ""}` : "";
      found.leaveOut(at, `ssh ${word}${value}`, "a roster has no such option");
      continue;
    }
    const value = word.length > 2 ? word.slice(2) : (words[++next] ?? "");
    const [, name = names[letter] ?? "", rest = value] =
      letter === "-o" ? (/^\s*(\w+)\s*[=\s]\s*(.*)$/s.exec(value) ?? []) : [];
    takeOption(found, fields, name, rest, at);
  }
}
