import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import type { Fields, Found } from "./found.ts";
import { isForbidden } from "./plain-values.ts";
import { hopsOf } from "./ssh-options.ts";

/** Columns, by what spreadsheets call them. */
const columns = new Map(
  Object.entries({
    name: "name",
    host: "address",
    hostname: "name",
    node: "name",
    address: "address",
    ip: "address",
    ip_address: "address",
    ipaddress: "address",
    fqdn: "address",
    user: "user",
    username: "user",
    login: "user",
    port: "port",
    ssh_port: "port",
    identityfile: "identityFile",
    identity_file: "identityFile",
    key_file: "identityFile",
    id: "id",
    dc: "dc",
    datacenter: "dc",
    roles: "roles",
    role: "roles",
    groups: "groups",
    group: "groups",
    labels: "labels",
    label: "labels",
    taints: "taints",
    jump: "jump",
    hostkeys: "hostKeys",
    hostkey: "hostKeys",
  }),
);

interface Cell {
  readonly text: string;
  readonly at: SourcePosition;
}

/**
 * A table with a line of headings, by commas, semicolons or tabs (RFC 4180): name and address, then user, port, roles, labels
 * (`k=v k=v`), groups, dc, jump, …; `vars.NAME` is a variable. @throws KcoreError ROSTER_IMPORT
 */
export function readCsv(found: Found, file: string, text: string): void {
  const [heading = [], ...rows] = rowsOf(file, text);
  const keys = heading.map(({ text: name, at }) => keyOf(found, name.trim(), at));
  if (!keys.includes("name") && !keys.includes("address"))
    throw new KcoreError({
      code: "ROSTER_IMPORT",
      message: `${file} has no column “name” or “address” in its first line`,
      at: { file, line: 1, column: 1 },
      hint: "name,address,user,port,roles,labels",
    });
  for (const row of rows) readRow(found, keys, row);
}

function keyOf(found: Found, name: string, at: SourcePosition): string | undefined {
  if (/^(vars|labels)\.[^.]+$/.test(name) && !isForbidden(name.replace(/^\w+\./, ""))) return name;
  const key = columns.get(name.toLowerCase().replaceAll(/[\s-]+/g, "_"));
  if (key !== undefined) return key;
  const isSecret = /pass/i.test(name);
  found.leave(
    at,
    `the column “${name}”`,
    isSecret
      ? "passwords; kcore roster trust --deploy-key puts a key there by one"
      : "no such column is known; vars.NAME and labels.NAME keep a value",
  );
  return undefined;
}

function readRow(found: Found, keys: readonly (string | undefined)[], row: readonly Cell[]): void {
  const cellOf = (key: string): Cell | undefined =>
    row.find((cell, index) => keys[index] === key && cell.text.trim() !== "");
  const [name, address] = [cellOf("name"), cellOf("address")];
  const first = name ?? address;
  if (!first) return found.leave(row[0]?.at ?? { file: "", line: 1, column: 1 }, "a line", "it names no node");
  const fields = found.node(first.text.trim(), first.at);
  if (!fields) return;
  const at = (address ?? first).at;
  found.put(fields, "address", (address ?? first).text.trim(), at);
  for (const [index, cell] of row.entries()) {
    const key = keys[index];
    if (key !== undefined && key !== "name" && key !== "address" && cell.text.trim() !== "")
      readCell(found, fields, key, cell);
  }
}

function readCell(found: Found, fields: Fields, key: string, { text, at }: Cell): void {
  const value = text.trim();
  const [, kind, name = ""] = /^(vars|labels)\.(.+)$/.exec(key) ?? [];
  if (kind === "vars") fields["vars"] = { ...(fields["vars"] as Fields | undefined), [name]: value };
  else if (kind === "labels") takeLabels(found, fields, { [name]: value }, at);
  else if (key === "labels") takeLabels(found, fields, labelsOf(value), at);
  else if (key === "jump") {
    const hops = hopsOf(wordsOf(value).join(","));
    if (hops) found.ways.set(fields, { at, hops });
    else found.leave(at, `jump ${value}`, "hops are USER@HOST:PORT, by commas");
  } else if (key === "hostKeys") found.put(fields, "hostKeys", value.split(/\s*[;\n]\s*/), at);
  else if (["roles", "groups", "taints"].includes(key)) found.put(fields, key as "roles", wordsOf(value), at);
  else found.put(fields, key as "user", key === "port" ? Number(value) : value, at);
}

function takeLabels(found: Found, fields: Fields, labels: Readonly<Record<string, string>>, at: SourcePosition): void {
  found.put(fields, "labels", { ...(fields["labels"] as Record<string, string> | undefined), ...labels }, at);
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    wordsOf(text).map((pair) => {
      const [key = "", ...value] = pair.split("=");
      return [key, value.join("=")];
    }),
  );
}

function wordsOf(text: string): string[] {
  return text.split(/[\s;,|]+/).filter((word) => word !== "");
}

/** The cells of each line that holds something, and where each begins. */
function rowsOf(file: string, text: string): Cell[][] {
  const [first = ""] = text.split("\n", 1);
  const separator = [",", ";", "\t"].reduce((best, one) =>
    first.split(one).length > first.split(best).length ? one : best,
  );
  const rows: Cell[][] = [];
  let [row, line, lineStart, next] = [[] as Cell[], 1, 0, 0];
  while (next < text.length || row.length > 0) {
    const at = { file, line, column: next - lineStart + 1 };
    const quoted = /\s*"((?:[^"]|"")*)"[ \t]*/y;
    quoted.lastIndex = next;
    const match = quoted.exec(text);
    const plain = new RegExp(`[^${separator}\\r\\n]*`, "y");
    plain.lastIndex = next;
    const cell = match ?? plain.exec(text) ?? [""];
    row.push({ text: match ? (match[1] ?? "").replaceAll('""', '"') : (cell[0] ?? ""), at });
    const breaks = cell[0]?.match(/\n/g)?.length ?? 0;
    line += breaks;
    next += cell[0]?.length ?? 0;
    if (breaks > 0) lineStart = text.lastIndexOf("\n", next - 1) + 1;
    if (text[next] === separator) {
      next += 1;
      continue;
    }
    if (row.some((one) => one.text.trim() !== "") && !row[0]?.text.startsWith("#")) rows.push(row);
    row = [];
    // What stands behind a closing quote is not part of any cell.
    const newline = text.indexOf("\n", next);
    if (newline === -1) break;
    [next, lineStart, line] = [newline + 1, newline + 1, line + 1];
  }
  return rows;
}
