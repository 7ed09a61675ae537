import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import { factAt } from "#engine/facts/paths.ts";

/** Where a part stands in the expression: offsets from 0. */
interface TextSpan {
  readonly start: number;
  readonly end: number;
}

export type TargetTerm = TextSpan & {
  readonly kind: "name" | "role" | "dc" | "group" | "label";
  readonly value: string;
};

export type FactOperator = "=" | "!=" | ">=" | "<=" | ">" | "<";

/** `fact:NAME`, or compared with a value. */
export type FactTerm = TextSpan & {
  readonly kind: "fact";
  /** As it is written. */
  readonly text: string;
  readonly name: string;
  readonly compare?: { readonly operator: FactOperator; readonly value: string };
};

export type Target =
  | TargetTerm
  | FactTerm
  | (TextSpan & { readonly kind: "regex"; readonly pattern: string })
  | (TextSpan & { readonly kind: "not"; readonly part: Target })
  | (TextSpan & { readonly kind: "and" | "or"; readonly parts: readonly [Target, ...Target[]] });

const ENTRY_PREFIXES = ["role", "dc", "group", "label"] as const;
const PREFIXES = [...ENTRY_PREFIXES, "fact"] as const;
const factNames = factCatalogue.map(({ name }) => name);
const MAX_LENGTH = 8192;
const MAX_DEPTH = 32;

interface Token extends TextSpan {
  readonly text: string;
}

/**
 * Reads a target expression. From loosest to tightest: `or` and the comma, `and`, `not`, parentheses.
 * @throws KcoreError TARGET_SYNTAX with the place
 */
export function parseTargets(text: string, at?: SourcePosition): Target {
  const parser = new Parser(text, at);
  return parser.parse();
}

class Parser {
  readonly #text: string;
  readonly #at: SourcePosition | undefined;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(text: string, at: SourcePosition | undefined) {
    this.#text = text;
    this.#at = at;
    if (text.length > MAX_LENGTH) this.#fail("the target is too long", { start: 0, end: 1 });
    this.#tokens = this.#tokenize();
  }

  parse(): Target {
    if (this.#tokens.length === 0) this.#fail("the target is empty", { start: 0, end: 0 }, "name a node, or * for all");
    const target = this.#or();
    const rest = this.#tokens[this.#next];
    if (rest !== undefined)
      this.#fail(`unexpected “${rest.text}”`, rest, rest.text === ")" ? undefined : "join by “and”, “or” or a comma");
    return target;
  }

  #tokenize(): Token[] {
    const tokens: Token[] = [];
    const pattern = /\s+|[(),]|\/(?:\\.|[^/\\])*\/|fact:(?:"[^"]*"|'[^']*'|[^\s(),"'])*|[^\s(),/][^\s(),]*|\//gy;
    for (const match of this.#text.matchAll(pattern)) {
      const [found] = match;
      const span = { start: match.index, end: match.index + found.length };
      if (found === "/") this.#fail("the regular expression has no end", span, "close it by /");
      if (found.trim() !== "") tokens.push({ text: found, ...span });
    }
    return tokens;
  }

  #or(): Target {
    return this.#chain("or", () => this.#and(), ["or", ","]);
  }

  #and(): Target {
    return this.#chain("and", () => this.#unary(), ["and"]);
  }

  #chain(kind: "and" | "or", part: () => Target, words: readonly string[]): Target {
    const first = part();
    const parts: [Target, ...Target[]] = [first];
    while (words.includes(this.#tokens[this.#next]?.text ?? "")) {
      this.#next++;
      parts.push(part());
    }
    return parts.length === 1 ? first : { kind, parts, start: first.start, end: parts.at(-1)?.end ?? first.end };
  }

  #unary(): Target {
    const token = this.#tokens[this.#next++];
    if (token === undefined)
      this.#fail(
        "the target ends too early",
        { start: this.#text.length, end: this.#text.length },
        "a node or term is missing",
      );
    if (++this.#depth > MAX_DEPTH) this.#fail("the target is nested too deeply", token);
    const target = this.#operand(token);
    this.#depth--;
    return target;
  }

  #operand(token: Token): Target {
    const { text, start, end } = token;
    if (text === "not") {
      const part = this.#unary();
      return { kind: "not", part, start, end: part.end };
    }
    if (text === "(") {
      const inner = this.#or();
      if (this.#tokens[this.#next++]?.text !== ")") this.#fail("this parenthesis is not closed", token);
      return inner;
    }
    if (text.startsWith("/")) return { kind: "regex", pattern: text.slice(1, -1), start, end };
    if (["and", "or", ",", ")"].includes(text)) this.#fail(`a node or term is missing before “${text}”`, token);
    return this.#term(token);
  }

  #term({ text, start, end }: Token): TargetTerm | FactTerm {
    const colon = text.indexOf(":");
    if (colon === -1) return this.#checked({ kind: "name", value: text, start, end });
    const prefix = text.slice(0, colon);
    if (prefix === "fact") return this.#fact({ text, start, end });
    const kind = ENTRY_PREFIXES.find((known) => known === prefix);
    if (kind === undefined)
      this.#fail(
        `no target term “${prefix}:”`,
        { start, end },
        suggestHint(prefix, PREFIXES, "there are role:, dc:, group:, label: and fact:"),
      );
    const value = text.slice(colon + 1);
    if (value === "") this.#fail(`“${prefix}:” needs a value`, { start, end });
    return this.#checked({ kind, value, start, end });
  }

  #fact({ text, start, end }: Token): FactTerm {
    const [, name = "", operator, written = ""] = /^fact:([^=!<>"']+)(?:(=|!=|>=|<=|>|<)(.*))?$/s.exec(text) ?? [];
    const span = { start, end };
    if (name === "") this.#fail(`“${text}” names no fact`, span, "fact:os.id=debian, fact:memory.totalKiB>=8000000");
    if (factAt(name) === undefined)
      this.#fail(`no fact “${name}”`, span, suggestHint(name, factNames, "docs/facts.md lists them"));
    if (operator === undefined) return { kind: "fact", text, name, ...span };
    const value = written.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2");
    const isOrder = operator !== "=" && operator !== "!=";
    if (isOrder && !/^\d+(\.\d+)*$/.test(value))
      this.#fail(`“${operator}” compares with a number or a version, not “${value}”`, span, "fact:os.version>=12");
    if (value === "") this.#fail(`“${text}” needs a value behind “${operator}”`, span);
    return { kind: "fact", text, name, compare: { operator: operator as FactOperator, value }, ...span };
  }

  #checked(term: TargetTerm): TargetTerm {
    if (!/^[A-Za-z0-9._*?[\]!=/-]+$/.test(term.value))
      this.#fail(`“${term.value}” cannot be a name`, term, "letters, digits, “.”, “_”, “-”, and the wildcards * ? […]");
    return term;
  }

  #fail(message: string, { start, end }: TextSpan, hint?: string): never {
    const length = Math.max(1, end - start);
    const at = this.#at && { ...this.#at, column: this.#at.column + start, length };
    const detail = `${this.#text.slice(0, 400)}\n${" ".repeat(start)}${"^".repeat(length)}`;
    throw new KcoreError({
      code: "TARGET_SYNTAX",
      message,
      ...(at ? { at } : start < 400 ? { detail } : {}),
      hint: hint ?? "docs/rosters.md, Targets",
    });
  }
}
