import { factCatalogue, type FactDescription, type FactType } from "./catalogue.ts";

/** A node's facts: {@link factCatalogue}, with null for each fact that the node could not determine. */
export type NodeFacts = Readonly<Record<string, unknown>>;

/** Limits for a report: a longer value becomes null, further rows or texts of a list are dropped. */
const limits = { text: 4096, rows: 2000 };

/** One line of facts.sh: a value, or a list or map of rows with columns. */
interface FactLine {
  readonly name: string;
  readonly read: (text: string | undefined) => unknown;
}

const factLines: readonly FactLine[] = [
  ...Map.groupBy(factCatalogue, ({ name }) => name.replace(/\.(N|NAME)\..*$/, "")),
].map(([name, facts]) => ({ name, read: reader(name, facts as [FactDescription, ...FactDescription[]]) }));

/**
 * The node's facts as expressions see them, from the flat lines of facts.sh: dots become maps, every value has its type, and
 * a missing value, or a value of another type, is null. All values are data: none is ever evaluated (requirement S-4).
 */
export function shapeFacts(flat: Readonly<Record<string, string>>): NodeFacts {
  return factTree(({ name, read }) => read(Object.hasOwn(flat, name) ? flat[name] : undefined));
}

/** A map of maps, with a value for each line of facts.sh. */
export function factTree(valueAt: (line: FactLine) => unknown): NodeFacts {
  const facts = emptyMap();
  for (const line of factLines) {
    const path = line.name.split(".");
    let map = facts;
    for (const part of path.slice(0, -1)) map = (map[part] ??= emptyMap()) as Record<string, unknown>;
    map[path.at(-1) as string] = valueAt(line);
  }
  return facts;
}

function emptyMap(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>;
}

function reader(name: string, facts: readonly [FactDescription, ...FactDescription[]]): FactLine["read"] {
  const [{ name: first, type }] = facts;
  if (first === name)
    return (text) =>
      type === "texts" ? (text?.split("\n").filter(Boolean).slice(0, limits.rows) ?? null) : valueOf(type, text);
  const columns = facts.map((fact) => ({ key: fact.name.slice(fact.name.lastIndexOf(".") + 1), type: fact.type }));
  const isMap = first.startsWith(`${name}.NAME.`);
  return (text) => {
    if (text === undefined) return null;
    const rows = text
      .split("\n")
      .filter(Boolean)
      .slice(0, limits.rows)
      .map((line) => rowOf(line, columns));
    return isMap ? mapOf(rows) : rows;
  };
}

function rowOf(line: string, columns: readonly { readonly key: string; readonly type: FactType }[]) {
  const cells = line.split("\t");
  const row = emptyMap();
  for (const [index, { key, type }] of columns.entries()) row[key] = cellOf(type, cells[index]);
  return row;
}

/** In a row `?` means a list that could not be read. */
function cellOf(type: FactType, cell: string | undefined): unknown {
  if (type !== "texts") return valueOf(type, cell);
  return cell === undefined || cell === "?" ? null : cell.split(" ").filter(Boolean);
}

function mapOf(rows: readonly Record<string, unknown>[]): Record<string, unknown> {
  const map = emptyMap();
  for (const row of rows) if (typeof row["name"] === "string") map[row["name"]] = row;
  return map;
}

function valueOf(type: Exclude<FactType, "texts">, text: string | undefined): unknown {
  if (text === undefined || text === "" || text.length > limits.text) return null;
  if (type === "text") return text;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : null;
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}
