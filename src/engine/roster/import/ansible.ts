import type { SourcePosition } from "#errors/problem.ts";
import type { Plain } from "../flow-yaml.ts";
import type { Fields, Found } from "./found.ts";
import { mayShare } from "./found.ts";
import type { Inventory, Variable, Variables } from "./inventory.ts";
import { asNumber, isForbidden, hasJinja, isTrue, plainValue, plainText } from "./plain-values.ts";
import { takeArguments } from "./ssh-options.ts";

type Key = "address" | "port" | "user" | "identityFile";

/** Variables that say how a host is reached, with their former names (“Connecting to hosts: behavioral inventory parameters”). */
const connectionKeys: Readonly<Record<string, Key>> = {
  ansible_host: "address",
  ansible_ssh_host: "address",
  ansible_port: "port",
  ansible_ssh_port: "port",
  ansible_user: "user",
  ansible_ssh_user: "user",
  ansible_private_key_file: "identityFile",
  ansible_ssh_private_key_file: "identityFile",
};

const secretVariables =
  /^ansible_((ssh|become|sudo|su|enable)_)?(pass|password)$|^ansible_(become|sudo|su)_(exe_)?pass(word)?$/;
const becomeVariables = /^ansible_(become|sudo|become_method|become_user|sudo_user)$/;
/** Connections that are SSH by another name. */
const sshConnections = [
  "ssh",
  "smart",
  "paramiko",
  "paramiko_ssh",
  "ansible.builtin.ssh",
  "ansible.builtin.paramiko_ssh",
];
const interpreterVariables = /^ansible_(python|perl|ruby)?_?interpreter/;

/** Puts an inventory's hosts, groups and variables into the future roster: the group `all` becomes the defaults. */
export function takeInventory(found: Found, inventory: Inventory): void {
  const all = inventory.groups.get("all");
  if (all) takeVariables(found, found.defaults, all.vars, "group");
  const names = new Map<string, string>();
  for (const [host, { at, vars }] of inventory.hosts) {
    const groups = inventory.groupsOf(host);
    const connection = connectionOf(inventory, host, groups);
    if (!isReachable(found, host, connection)) continue;
    const fields = found.node(host, at);
    if (!fields) continue;
    found.asCaller.add(fields);
    if (connection?.value === "local") fields["transport"] = "local";
    takeVariables(found, fields, vars, "host");
    if (fields["address"] === undefined && connection?.value !== "local") takeAddress(found, fields, host, at, vars);
    const own = groups.flatMap((name) => groupOf(found, inventory, name, names) ?? []);
    if (own.length > 0) fields["groups"] = own;
  }
}

/** Takes the name of a host for its address, unless a variable of the host gives one. */
function takeAddress(found: Found, fields: Fields, host: string, at: SourcePosition, vars: Variables): void {
  const hasAddress = ["ansible_host", "ansible_ssh_host"].some((name) => vars.has(name));
  if (!hasAddress) found.put(fields, "address", host, at, `the address of ${host}`);
}

function groupOf(found: Found, inventory: Inventory, name: string, names: Map<string, string>): string | undefined {
  const group = inventory.groups.get(name);
  const key = names.get(name) ?? found.entryName(name, group?.at ?? { file: "", line: 1, column: 1 }, "group");
  if (key === undefined || !group) return undefined;
  names.set(name, key);
  if (!found.groups.has(key)) {
    const fields: Fields = {};
    takeVariables(found, fields, group.vars, "group");
    found.groups.set(key, { at: group.at, fields });
  }
  return key;
}

/** The variable `ansible_connection` of a host: its own, else that of its groups, the last group first. */
function connectionOf(inventory: Inventory, host: string, groups: readonly string[]): Variable | undefined {
  const layers = [
    inventory.hosts.get(host),
    ...["all", ...groups].toReversed().map((name) => inventory.groups.get(name)),
  ];
  return layers.map((layer) => layer?.vars.get("ansible_connection")).find((value) => value !== undefined);
}

function isReachable(found: Found, host: string, connection: Variable | undefined): boolean {
  const value = plainText(connection?.value ?? "ssh");
  if (connection === undefined || value === "local" || sshConnections.includes(value)) return true;
  found.leaveOut(
    connection.at,
    `the host ${host}`,
    `it is reached by the connection plugin “${value}”, and kcore speaks SSH`,
  );
  return false;
}

function takeVariables(found: Found, fields: Fields, vars: Variables, owner: "host" | "group"): void {
  const own: Record<string, Plain> = {};
  for (const [name, variable] of vars) {
    if (!name.startsWith("ansible_")) takeOwn(found, own, name, variable);
    else if (secretVariables.test(name)) leaveOutSecret(found, name, variable);
    else if (hasJinja(variable.value)) leaveOutVariable(found, fields, name, variable, "it is an expression of Jinja");
    else if (hasVaultText(variable.value))
      leaveOutVariable(found, fields, name, variable, "it is encrypted by Ansible Vault");
    else takeConnectionVariable(found, fields, name, variable, owner);
  }
  takeBecome(found, fields, vars);
  if (Object.keys(own).length > 0) fields["vars"] = own;
}

function leaveOutVariable(found: Found, fields: Fields, name: string, { at }: Variable, why: string): void {
  if (connectionKeys[name] === "user") found.lostLogins.push({ fields, at, what: name, why });
  else found.leaveOut(at, name, why);
}

function takeOwn(found: Found, own: Record<string, Plain>, name: string, { value, at }: Variable): void {
  const plain = plainValue(value);
  if (hasVaultText(value)) found.leaveOut(at, name, "it is encrypted by Ansible Vault");
  else if (hasJinja(value))
    found.leaveOut(at, name, "an expression of Jinja; states have {{…}} of their own (docs/templates.md)");
  else if (/(^|_)(pass|passwd|password|secret|token)$/i.test(name) && typeof value === "string" && value !== "")
    found.leaveOut(at, name, "it looks like a secret, and a roster holds none: a state's parameter may refer to one");
  else if (plain === undefined || isForbidden(name)) found.leaveOut(at, name, "its value cannot stand in a roster");
  else own[name] = plain;
}

/** Whether Ansible Vault encrypts a value, or a part of it. */
function hasVaultText(value: unknown): boolean {
  return /"__ansible_vault"|"\$ANSIBLE_VAULT/.test(JSON.stringify(value) ?? "");
}

function leaveOutSecret(found: Found, name: string, { at, value }: Variable): void {
  const isSudo = /become|sudo/.test(name);
  const how = isSudo
    ? "sudo: { password: { command: … } } refers to it"
    : "kcore roster trust --deploy-key puts a key there by it";
  found.leaveOut(at, name, `${hasJinja(value) ? "a password" : "a password in the inventory"}; ${how}`);
}

function takeConnectionVariable(
  found: Found,
  fields: Fields,
  name: string,
  { value, at }: Variable,
  owner: "host" | "group",
): void {
  const key = connectionKeys[name];
  if (name === "ansible_connection" || becomeVariables.test(name) || value === null || value === "") return;
  if (key !== undefined) {
    if (owner === "group" && !mayShare(key)) found.leaveOut(at, name, "an address is a host's own");
    else found.put(fields, key, key === "port" ? asNumber(value) : value, at, name);
  } else if (/^ansible_ssh_(common|extra)_args$|^ansible_ssh_args$/.test(name))
    takeArguments(found, fields, plainText(value), at);
  else if (interpreterVariables.test(name)) found.leaveOut(at, name, "kcore needs no interpreter on nodes");
  else if (name !== "ansible_group_priority") found.leaveOut(at, name, "it is for Ansible alone");
}

/** Sets `sudo` for `become` by sudo to root, the only form that kcore has; reports other forms. */
function takeBecome(found: Found, fields: Fields, vars: Variables): void {
  const [method, user] = [
    vars.get("ansible_become_method"),
    vars.get("ansible_become_user") ?? vars.get("ansible_sudo_user"),
  ];
  const isOther = method !== undefined && !/^(ansible\.builtin\.)?sudo$/.test(String(method.value));
  if (isOther)
    found.leaveOut(method.at, `ansible_become_method=${String(method.value)}`, "kcore becomes root by sudo alone");
  if (user !== undefined && user.value !== "root")
    found.leaveOut(
      user.at,
      `ansible_become_user=${String(user.value)}`,
      "kcore works as root; a step's runAs names another user",
    );
  const wanted = vars.get("ansible_become") ?? vars.get("ansible_sudo");
  if (!isOther && isTrue(wanted?.value)) fields["sudo"] = true;
}
