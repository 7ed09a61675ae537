import { CsvError, parse } from "csv-parse/sync";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import type { Fields, Found } from "./found.ts";
import { isForbidden } from "./plain-values.ts";
import { hopsOf } from "./ssh-options.ts";

/** Columns, by their usual names in spreadsheets. */
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

interface Row {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

/**
 * Reads a table with a line of headings, by commas, semicolons or tabs (RFC 4180): name or address, then user, port, roles, labels
 * (`k=v k=v`), groups, dc, jump, …; `vars.NAME` is a variable. @throws KcoreError ROSTER_IMPORT
 */
export function readCsv(found: Found, file: string, text: string): void {
  const [heading = [], ...rows] = rowsOf(file, text);
  const keys = heading.map(({ text: name, at }) => fieldOf(found, name.trim(), at));
  if (!keys.includes("name") && !keys.includes("address"))
    throw new KcoreError({
      code: "ROSTER_IMPORT",
      message: `${file} has no column “name” or “address” in its first line`,
      at: { file, line: 1, column: 1 },
      hint: "name,address,user,port,roles,labels",
    });
  for (const row of rows) readRow(found, keys, row);
}

function fieldOf(found: Found, name: string, at: SourcePosition): string | undefined {
  if (/^(vars|labels)\.[^.]+$/.test(name) && !isForbidden(name.replace(/^\w+\./, ""))) return name;
  const key = columns.get(name.toLowerCase().replaceAll(/[\s-]+/g, "_"));
  if (key !== undefined) return key;
  const isSecret = /pass/i.test(name);
  found.leaveOut(
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
  if (!first) return found.leaveOut(row[0]?.at ?? { file: "", line: 1, column: 1 }, "a line", "it names no node");
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
    if (hops) found.routes.set(fields, { at, hops });
    else found.leaveOut(at, `jump ${value}`, "hops are USER@HOST:PORT, by commas");
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

/** The cells of each row that is not empty; `at` is the line on which the row begins. @throws KcoreError ROSTER_IMPORT */
function rowsOf(file: string, text: string): Cell[][] {
  const [first = ""] = text.split("\n", 1);
  const delimiter = [",", ";", "\t"].reduce((best, one) =>
    first.split(one).length > first.split(best).length ? one : best,
  );
  const rows = parseRows(file, text, delimiter).filter(({ record }) => record.some((cell) => cell !== ""));
  return rows.map(({ record, info }) => {
    const line = info.lines - record.join("").split("\n").length + 1;
    return record.map((cell) => ({ text: cell, at: { file, line, column: 1 } }));
  });
}

function parseRows(file: string, text: string, delimiter: string): readonly Row[] {
  try {
    return parse(text, {
      delimiter,
      info: true,
      trim: true,
      relax_quotes: true,
      relax_column_count: true,
      comment: "#",
      comment_no_infix: true,
    }) as unknown as readonly Row[];
  } catch (cause) {
    if (!(cause instanceof CsvError)) throw cause;
    const line = Number(cause["lines"]);
    throw new KcoreError(
      { code: "ROSTER_IMPORT", message: `${file} has a quote that is not closed`, at: { file, line, column: 1 } },
      { cause },
    );
  }
}
