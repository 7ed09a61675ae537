import type { SourcePosition } from "#errors/problem.ts";
import { NodeSchema, SharedSchema } from "../entry-schema.ts";
import { EntryName } from "../entry-fields.ts";
import { isForbidden } from "./plain-values.ts";
import type { Plain } from "../flow-yaml.ts";

/** A thing that an import could not carry over: its place, its name, and the reason or its replacement. */
export interface LeftOut {
  readonly at: SourcePosition;
  readonly what: string;
  readonly why: string;
}

export type Fields = Record<string, Plain>;

export interface FoundEntry {
  readonly at: SourcePosition;
  readonly fields: Fields;
}

/** A jump host as other programs write it; it becomes an entry's name when all nodes are known. */
export interface Hop {
  readonly host: string;
  readonly user?: string;
  readonly port?: number;
  readonly identityFile?: string;
}

/** Collects the contents of other programs' files: entries for a roster, routes, and the things left out. */
export class Found {
  readonly defaults: Fields = {};
  readonly groups = new Map<string, FoundEntry>();
  readonly nodes = new Map<string, FoundEntry>();
  /** The routes to nodes, groups and defaults (by their fields), first hop first. */
  readonly routes = new Map<Fields, { readonly at: SourcePosition; readonly hops: readonly Hop[] }>();
  readonly leftOut: LeftOut[] = [];
  /** Login names of nodes, groups and defaults that a roster cannot hold: without them kcore would log in as root. */
  readonly lostLogins: (LeftOut & { readonly fields: Fields })[] = [];
  /** Nodes from programs that log in under their caller's name, unless a user is named. */
  readonly asCaller = new Set<Fields>();
  readonly #seen = new Set<string>();

  /** Reports once a thing that is not carried over. */
  leaveOut(at: SourcePosition, what: string, why: string): void {
    const key = `${at.file}:${at.line}:${what}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.leftOut.push({ at, what, why });
  }

  /** Sets a field if the roster's schema accepts the value; otherwise reports it. */
  put(
    fields: Fields,
    key: keyof typeof NodeSchema.shape,
    value: unknown,
    at: SourcePosition,
    what: string = key,
  ): void {
    // A trailing dot only marks a domain name as absolute (RFC 1034, 3.1).
    const whole = key === "address" && typeof value === "string" ? value.replace(/(?<=.)\.$/, "") : value;
    // Other programs' YAML reads a login of digits alone as a number.
    const given = key === "user" && typeof whole === "number" ? String(whole) : whole;
    const result = NodeSchema.shape[key].safeParse(given);
    if (result.success) fields[key] = given as Plain;
    else if (key === "user") this.lostLogins.push({ fields, at, what, why: reasonOf(result.error) });
    else this.leaveOut(at, what, reasonOf(result.error));
  }

  /** Adds a node, and returns its fields; undefined, and reported, if the name is taken or cannot be used. */
  node(name: string, at: SourcePosition): Fields | undefined {
    const key = this.entryName(name, at, "node");
    if (key === undefined) return undefined;
    const earlier = this.nodes.get(key);
    if (earlier) {
      this.leaveOut(at, `the node ${key}`, `it was met before, at ${earlier.at.file}:${earlier.at.line}`);
      return undefined;
    }
    const fields: Fields = {};
    this.nodes.set(key, { at, fields });
    return fields;
  }

  /** The name as a roster accepts it: other characters become hyphens, which is reported. Undefined, and reported, if nothing usable is left. */
  entryName(text: string, at: SourcePosition, what: string): string | undefined {
    if (EntryName.safeParse(text).success && !isForbidden(text)) return text;
    const name = text.replaceAll(/[^A-Za-z0-9._-]+|:+/g, "-").replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");
    if (EntryName.safeParse(name).success && name !== text) {
      this.leaveOut(at, `the name “${text}” of a ${what}`, `it is ${name} here: letters, digits, “.”, “_” and “-”`);
      return name;
    }
    this.leaveOut(at, `the ${what} “${text}”`, "a name is 1 to 63 letters, digits, “.”, “_” or “-”");
    return undefined;
  }
}

/** Whether groups and defaults may have this key, too. */
export function mayShare(key: string): boolean {
  return Object.hasOwn(SharedSchema.shape, key);
}

/** kcore's own messages begin in lower case and continue “it …”; zod's own are replaced. */
function reasonOf({ issues: [first] }: { readonly issues: readonly { readonly message: string }[] }): string {
  return first !== undefined && /^[a-z]/.test(first.message)
    ? `it ${first.message}`
    : "no value that a roster takes there";
}

/** A file of another program. */
export interface ForeignFile {
  /** The file's name in messages. */
  readonly file: string;
  readonly text: string;
}

/** A file that an operator gave, or a folder of Ansible's inventories. */
export interface GivenFile extends ForeignFile {
  readonly isFolder?: boolean;
  /** Whether `group_vars` or `host_vars` lie beside it. */
  readonly hasVariables?: boolean;
}
