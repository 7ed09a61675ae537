import type { WriteResult } from "#api/schemas.ts";
import type { Register } from "#crdt/register.ts";
import { canonicalJson } from "./canonical-json.ts";
import { decodeDot, encodeDot } from "./dots.ts";
import { Refused } from "./refused.ts";
import type { Replica } from "../replica/create-replica.ts";
import { WriteRefused, type KeyChange, type Json } from "../replica/replica.ts";
import { registerKindOf, registerKinds, type RegisterKind, type ValueOf } from "./registers.ts";

/** A register with its parsed value. */
export interface ParsedRegister<Value> {
  readonly key: string;
  readonly value: Value;
  /** The register's version, as callers see it. */
  readonly dot: string;
  readonly origin: string;
  /** ISO 8601, by the writer's clock. */
  readonly at: string;
}

/** A requested change of a register: `undefined` deletes. */
export interface RegisterChange {
  readonly key: string;
  readonly value: unknown;
  /** True: `ifMatch` does not apply to this register, so any version of it is overwritten. */
  readonly isFree?: boolean;
}

/** The replica with parsed and checked values in place of texts, and with errors that clients understand. */
export type Records = ReturnType<typeof openRecords>;

export function openRecords(replica: Replica) {
  // Registers are immutable, so each is parsed and checked once.
  const cache = new WeakMap<Register, ParsedRegister<unknown> | undefined>();
  const parse = <Name extends RegisterKind>(
    kind: Name,
    register: Register,
  ): ParsedRegister<ValueOf<Name>> | undefined => {
    if (!cache.has(register)) {
      const { success, data } = registerKinds[kind].schema.safeParse(JSON.parse(register.text ?? "null"));
      cache.set(register, success ? asParsed(register, data as unknown) : undefined);
    }
    return cache.get(register) as ParsedRegister<ValueOf<Name>> | undefined;
  };
  const dotOf = (key: string): string => {
    const register = replica.get(key);
    return register === undefined ? "absent" : encodeDot(register);
  };
  /**
   * Writes one transaction; resolves with its dot when it is durable. `ifMatch` must be the dot of each written register,
   * or `absent`. @throws Refused 409 MATCH_FAILED, 413 API_INVALID, 503 CONTROLLER_READ_ONLY, 507 STORE_UNWRITABLE
   */
  const write = async (changes: readonly RegisterChange[], ifMatch?: string): Promise<string> => {
    refuseIfIsolated(replica);
    const match = ifMatch === undefined ? {} : { ifMatch: decodeDot(ifMatch) };
    const written: KeyChange[] = changes.map(({ key, value, isFree }) => ({
      key,
      value: (value ?? null) as Json,
      ...(isFree === true ? {} : match),
    }));
    try {
      return encodeDot(await replica.write(written));
    } catch (error) {
      throw error instanceof WriteRefused ? asRefused(error, dotOf) : error;
    }
  };
  return {
    replica,
    get<Name extends RegisterKind>(kind: Name, key: string): ParsedRegister<ValueOf<Name>> | undefined {
      const register = replica.get(key);
      return register && parse(kind, register);
    },
    value<Name extends RegisterKind>(kind: Name, key: string): ValueOf<Name> | undefined {
      const register = replica.get(key);
      return register && parse(kind, register)?.value;
    },
    *list<Name extends RegisterKind>(kind: Name, prefix: string): Iterable<ParsedRegister<ValueOf<Name>>> {
      for (const [key, register] of replica.entries(prefix)) {
        if (registerKindOf(key) !== kind) continue;
        const parsed = parse(kind, register);
        if (parsed) yield parsed;
      }
    },
    /** All registers below a prefix, parsed as JSON without a schema. */
    *all(prefix: string): Iterable<ParsedRegister<unknown>> {
      for (const [, register] of replica.entries(prefix))
        yield asParsed(register, JSON.parse(register.text ?? "null") as unknown);
    },
    write,
    /** Writes the changes that differ from the present values; writes nothing, and returns `unchanged`, if none does. */
    async put(changes: readonly RegisterChange[]): Promise<WriteResult> {
      const open = changes.filter(({ key, value }) => !isSame(replica.get(key)?.text, value));
      if (open.length === 0) return { result: "unchanged", dot: dotOf(changes[0]?.key ?? "") };
      const isNew = open.some(({ key, value }) => value !== undefined && replica.get(key) === undefined);
      const isDeletion = open.every(({ value }) => value === undefined);
      const dot = await write(open);
      return { result: isDeletion ? "deleted" : isNew ? "created" : "updated", dot };
    },
  };
}

export function asParsed<Value>(register: Register, value: Value): ParsedRegister<Value> {
  const { key, o: origin, ms } = register;
  return { key, value, dot: encodeDot(register), origin, at: new Date(ms).toISOString() };
}

/** Whether a register's text is the JSON of a value, with the fields in any order. */
function isSame(text: string | null | undefined, value: unknown): boolean {
  if (text === undefined || text === null) return value === undefined;
  if (value === undefined) return false;
  const json = JSON.stringify(value);
  if (json === text) return true;
  // Cheap tests first: another order of fields has the same length and the same characters.
  if (json.length !== text.length || sumOf(json) !== sumOf(text)) return false;
  return canonicalJson(JSON.parse(text)) === canonicalJson(value);
}

function sumOf(text: string): number {
  let sum = 0;
  for (let index = 0; index < text.length; index++) sum += text.charCodeAt(index) ** 2;
  return sum;
}

function asRefused(error: WriteRefused, dotOf: (key: string) => string): Refused {
  const { code, status, message, key } = error;
  if (code === "CONFLICT") return key === undefined ? mismatch("a register", "another") : mismatch(key, dotOf(key));
  if (code === "FULL") return new Refused(status, "STORE_UNWRITABLE", message, "free space; nothing was acknowledged");
  if (code === "TOO_LARGE") return new Refused(status, "API_INVALID", message);
  return new Refused(status, "CONTROLLER_READ_ONLY", message, "ask another controller: kcore -s HOST");
}

function mismatch(key: string, dot: string): Refused {
  return new Refused(409, "MATCH_FAILED", `${key} is not as you saw it`, `look again; its version is ${dot} now`);
}

/** Refuses a write that may never reach the other controllers. @throws Refused CONTROLLER_READ_ONLY */
function refuseIfIsolated(replica: Replica): void {
  const turnedOut = replica.turnedOut();
  if (turnedOut === undefined && !replica.isUnheard()) return;
  throw new Refused(
    503,
    "CONTROLLER_READ_ONLY",
    turnedOut ?? "no other controller has let this one in since it started, so nothing is written here",
    `ask another controller: kcore -s HOST; ${turnedOut === undefined ? "if none is left: kcore controller repair --alone" : "it must join anew: kcore controller join --fresh"}, on its machine`,
  );
}
