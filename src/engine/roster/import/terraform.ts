import { isIP } from "node:net";
import { parseForeign } from "#engine/yaml/foreign.ts";
import { plainOf, type SourceEntry, type SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import { KcoreError } from "#errors/problem.ts";
import { NodeSchema } from "../entry-schema.ts";
import type { Fields, Found } from "./found.ts";
import { asNumber, plainValue, plainText } from "./plain-values.ts";
import { hopsOf } from "./ssh-options.ts";

const addresses = ["address", "ip", "ip_address", "public_ip", "ipv4_address", "private_ip", "host"];
/** Roster keys by their names with underscores, as usual in Terraform. */
const rosterKeys = new Map([
  ["identity_file", "identityFile"],
  ["host_keys", "hostKeys"],
  ["state_dir", "stateDir"],
]);

/**
 * Reads the answer of `terraform output -json` (or `-json NAME`). Takes the output `kcore_nodes` or `nodes`. Without those, takes every output
 * that maps names to IP addresses, or to objects with an address and other keys of a node. @throws KcoreError ROSTER_IMPORT
 */
export function readTerraform(found: Found, file: string, text: string): void {
  const root = parseForeign(file, text);
  const nodes = root.kind === "map" ? nodesOf(found, root) : [];
  for (const entry of nodes) readNode(found, entry);
  if (nodes.length === 0)
    throw new KcoreError({
      code: "ROSTER_IMPORT",
      message: `${file} has no output that is a map of nodes`,
      at: root.at,
      hint: 'output "kcore_nodes" { value = { n1 = "192.0.2.11", n2 = { address = "192.0.2.12", user = "ops" } } }',
    });
}

function nodesOf(found: Found, root: SourceMap): readonly SourceEntry[] {
  const outputs = [...root.entries.values()];
  const isWhole = outputs.every(({ value }) => value.kind === "map" && value.entries.has("value"));
  if (!isWhole) return isNodes(root) ? outputs : [];
  const named = outputs.filter(({ key }) => key === "kcore_nodes" || key === "nodes");
  return outputs.flatMap((output) => {
    const { key, keyAt, value: whole } = output;
    const value = (whole as SourceMap).get("value");
    const isSensitive = plainOf((whole as SourceMap).get("sensitive") ?? whole) === true;
    const why = isSensitive
      ? "it is sensitive"
      : named.length > 0 && !named.includes(output)
        ? "the nodes are those of another output"
        : "it is no map of names to IP addresses or to objects with an address; kcore_nodes may have host names, too";
    const isMeant = named.includes(output) || (named.length === 0 && value !== undefined && holdsOnlyIps(value));
    if (!isSensitive && value?.kind === "map" && isNodes(value) && isMeant) return [...value.entries.values()];
    found.leaveOut(keyAt, `the output ${key}`, why);
    return [];
  });
}

function isNodes(map: SourceMap): boolean {
  const values = [...map.entries.values()].map(({ value }) => value);
  return values.length > 0 && values.every((value) => addressOf(value) !== undefined);
}

/** Accepts no host names: maps of tags or buckets hold words that look like them. */
function holdsOnlyIps(map: SourceNode): boolean {
  const values = map.kind === "map" ? [...map.entries.values()].map(({ value }) => plainOf(value)) : [];
  return values.every((value) => typeof value !== "string" || isIP(value) !== 0);
}

function addressOf(value: SourceNode): SourceNode | undefined {
  if (value.kind === "map")
    return addresses.map((key) => value.get(key)).find((one) => one && typeof plainOf(one) === "string");
  if (value.kind !== "scalar" || typeof value.value !== "string") return undefined;
  return NodeSchema.shape.address.safeParse(value.value).success ? value : undefined;
}

function readNode(found: Found, { key, keyAt, value }: SourceEntry): void {
  const fields = found.node(key, keyAt);
  const address = addressOf(value);
  if (!fields || !address) return;
  found.put(fields, "address", plainOf(address), address.at);
  for (const entry of value.kind === "map" ? value.entries.values() : [])
    if (entry.value !== address) readKey(found, fields, entry);
}

function readKey(found: Found, fields: Fields, { key, keyAt, value }: SourceEntry): void {
  const name = rosterKeys.get(key) ?? key;
  const plain = plainOf(value);
  if (plain === null) return;
  if (name === "jump") {
    const hops = hopsOf(Array.isArray(plain) ? plain.join(",") : plainText(plain));
    if (hops) found.routes.set(fields, { at: keyAt, hops });
    else found.leaveOut(keyAt, key, "hops are USER@HOST:PORT");
  } else if (Object.hasOwn(NodeSchema.shape, name)) {
    const known = name as keyof typeof NodeSchema.shape;
    found.put(fields, known, known === "port" ? asNumber(plain) : plainValue(plain), keyAt);
  } else
    found.leaveOut(
      keyAt,
      key,
      addresses.includes(key) ? "a node has one address" : "no key of a node; vars keeps values",
    );
}
