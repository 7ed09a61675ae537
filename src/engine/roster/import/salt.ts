import { KcoreError } from "#errors/problem.ts";
import { parseForeign } from "#engine/yaml/foreign.ts";
import { plainOf, type SourceEntry, type SourceMap } from "#engine/yaml/node.ts";
import type { Fields, Found } from "./found.ts";
import { asNumber, isTrue, plainValue } from "./plain-values.ts";
import { takeOption } from "./ssh-options.ts";

/** Keys of a target that are left out, with the reason (Salt's “Rosters”, targets data). */
const leftOutKeys = new Map(
  Object.entries({
    passwd: "a password in clear text; kcore roster trust --deploy-key puts a key there by it",
    password: "a password in clear text; kcore roster trust --deploy-key puts a key there by it",
    priv_passwd: "a password in clear text; identityPassphrase: { command: … } refers to it",
    sudo_user: "kcore works as root",
    tty: "kcore needs no terminal for sudo",
    timeout: "kcore has its own limits",
    thin_dir: "stateDir is kcore's own folder on a node, and needs no thin",
    cmd_umask: "kcore sets the mode of each file",
    set_path: "kcore sets its own PATH",
    ssh_pre_flight: "a step of a state does what has to come first",
    ssh_pre_flight_args: "a step of a state does what has to come first",
    identities_only: "kcore logs in by the identity file, else by the agent and the usual files",
    remote_port_forwards: "kcore forwards nothing",
  }),
);

/** Reads a flat roster of salt-ssh, a map of ids. A roster that needs rendering is refused. @throws KcoreError ROSTER_IMPORT, YAML_SYNTAX */
export function readSalt(found: Found, file: string, text: string): void {
  refuseRenderers(file, text);
  const root = parseForeign(file, text);
  if (root.kind !== "map") {
    if (root.kind === "scalar" && root.value === null) return;
    throw new KcoreError({ code: "ROSTER_IMPORT", message: `${file} is no Salt roster: a map of ids`, at: root.at });
  }
  for (const entry of root.entries.values()) readTarget(found, entry);
}

function refuseRenderers(file: string, text: string): void {
  const [first = ""] = text.split("\n", 1);
  const renderer = /^#!\s*(\S+)/.exec(first)?.[1];
  const lines = text.split("\n");
  const line = lines.findIndex((one) => /\{[{%]/.test(one.replace(/^\s*#.*/, "")));
  const isPlain = renderer === undefined || /^(jinja\|)?yaml$/.test(renderer);
  if (isPlain && line === -1) return;
  throw new KcoreError({
    code: "ROSTER_IMPORT",
    message: isPlain ? `${file} is a template of Jinja` : `${file} is written for Salt's renderer “${renderer}”`,
    at: { file, line: isPlain ? line + 1 : 1, column: 1 },
    hint: "import what it renders to: salt-call --local slsutil.renderer PATH --out yaml | kcore roster import --from salt -",
  });
}

function readTarget(found: Found, { key, keyAt, value }: SourceEntry): void {
  if (value.kind === "list" || (value.kind === "scalar" && typeof value.value !== "string"))
    return found.leaveOut(keyAt, `the target ${key}`, "it has no host");
  const fields = found.node(key, keyAt);
  if (!fields) return;
  if (value.kind === "scalar") return found.put(fields, "address", value.value, value.at, "host");
  for (const entry of value.entries.values()) readKey(found, fields, entry);
}

function readKey(found: Found, fields: Fields, { key, keyAt, value }: SourceEntry): void {
  const plain = plainOf(value);
  const name = key === "host" ? "address" : key === "user" ? "user" : undefined;
  if (plain === null) return;
  if (name) found.put(fields, name, typeof plain === "number" ? String(plain) : plain, keyAt, key);
  else if (key === "port") found.put(fields, "port", asNumber(plain), keyAt);
  else if (key === "sudo") {
    if (isTrue(plain)) fields["sudo"] = true;
  } else if (key === "priv") readKeyFile(found, fields, plain, { key, keyAt });
  else if (key === "minion_opts") readMinionOptions(found, fields, value);
  else if (key === "ssh_options") readOptions(found, fields, plain, keyAt);
  else found.leaveOut(keyAt, key, leftOutKeys.get(key) ?? "a roster of kcore has no such key");
}

function readKeyFile(
  found: Found,
  fields: Fields,
  plain: unknown,
  { keyAt }: Pick<SourceEntry, "key" | "keyAt">,
): void {
  // Without an identity file kcore uses the SSH agent.
  if (plain !== "agent-forwarding") found.put(fields, "identityFile", plain, keyAt, "priv");
}

/** Grains, by which states know a node, become its variables. */
function readMinionOptions(found: Found, fields: Fields, value: SourceEntry["value"]): void {
  for (const { key, keyAt, value: option } of value.kind === "map" ? (value as SourceMap).entries.values() : []) {
    const plain = key === "grains" ? plainValue(plainOf(option)) : undefined;
    if (typeof plain === "object" && plain !== null && !Array.isArray(plain)) fields["vars"] = { grains: plain };
    else found.leaveOut(keyAt, `minion_opts.${key}`, "there is no minion on a node; grains become vars.grains");
  }
}

function readOptions(found: Found, fields: Fields, plain: unknown, at: SourceEntry["keyAt"]): void {
  for (const option of Array.isArray(plain) ? plain : [plain]) {
    const [, name = String(option), value = ""] = /^\s*(\w+)\s*[=\s]\s*(.*)$/.exec(String(option)) ?? [];
    takeOption(found, fields, name, value, at);
  }
}
