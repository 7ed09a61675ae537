import type { SourcePosition } from "#errors/problem.ts";
import { matchesGlob } from "../patterns.ts";
import type { Fields, Found } from "./found.ts";
import { reasonFor, splitWords, takeOption } from "./ssh-options.ts";

/** Reads the files that an `Include` names; each with the name that is shown. */
export type ReadIncluded = (
  pattern: string,
  from: string,
) => readonly { readonly file: string; readonly text: string }[];

interface Option {
  readonly name: string;
  readonly value: string;
  readonly at: SourcePosition;
}

/** Options for the hosts that match, in the file's order: the first value counts (ssh_config(5)). */
interface Block {
  readonly patterns: readonly string[];
  /** Which names they match: those given, whose own Host lines name nodes, or what HostName made of them. */
  readonly of: "host" | "originalhost" | "address";
  readonly options: Option[];
  readonly at: SourcePosition;
}

/** What names a host and how it is reached; all other options are told once, where they stand. */
const reaching = ["hostname", "user", "port", "identityfile", "proxyjump", "proxycommand"];
const deepest = 16;
const gitServers = /^(\w+\.)*(github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|git\.sr\.ht)$/i;
const everyHost = { patterns: ["*"], of: "host" } as const;

/** The hosts that a client's ssh_config names without wildcards; patterns give what they say to those they match. */
export function readSshConfig(found: Found, file: string, text: string, included: ReadIncluded): void {
  const blocks = new Reader(found, included).read(file, text);
  const names = new Map<string, SourcePosition>();
  for (const { patterns, at, of } of blocks)
    for (const name of of === "host" ? patterns : []) if (!/[*?!]/.test(name) && !names.has(name)) names.set(name, at);
  for (const [name, at] of names) takeHost(found, blocks, name, at);
}

class Reader {
  readonly #found: Found;
  readonly #included: ReadIncluded;
  readonly #blocks: Block[] = [];

  constructor(found: Found, included: ReadIncluded) {
    this.#found = found;
    this.#included = included;
  }

  read(file: string, text: string, depth = 0): readonly Block[] {
    const start = { file, line: 1, column: 1 };
    // What an included file says before its first Host belongs where it is included.
    let block = this.#begin(this.#blocks.at(-1) ?? everyHost, start);
    for (const [index, line] of text.split(/\r?\n/).entries()) {
      const at = { file, line: index + 1, column: line.length - line.trimStart().length + 1 };
      const [, name = "", rest = ""] = /^\s*([A-Za-z][A-Za-z0-9]*)(?:\s*=\s*|\s+|$)(.*?)\s*$/.exec(line) ?? [];
      if (name === "") {
        if (!/^\s*(#|$)/.test(line)) this.#found.leave(at, "a line", "it is none of an ssh_config");
        continue;
      }
      const option = name.toLowerCase();
      const value = withoutComment(rest);
      if (option === "host") block = this.#begin({ patterns: splitWords(value), of: "host" }, at);
      else if (option === "match") block = this.#begin(this.#matched(value, at), at);
      else if (option === "include") {
        if (block.patterns.length === 0)
          this.#found.leave(at, `Include ${value}`, "it depends on a condition that is not known here");
        else this.#include(value, at, depth);
        block = this.#begin(block, at);
      } else if (reaching.includes(option)) block.options.push({ name, value, at });
      else this.#found.leave(at, `${name} ${value}`.trim(), reasonFor(option));
    }
    return this.#blocks;
  }

  #begin({ patterns, of }: Pick<Block, "patterns" | "of">, at: SourcePosition): Block {
    const block = { patterns, of, options: [], at };
    this.#blocks.push(block);
    return block;
  }

  /** `Match all` and `Match host a,b` are patterns; what depends on users, commands or networks is not known here. */
  #matched(value: string, at: SourcePosition): Pick<Block, "patterns" | "of"> {
    const words = splitWords(value);
    const [kind = "", list = ""] = [words[0]?.toLowerCase(), words[1]];
    if (words.length === 1 && kind === "all") return everyHost;
    if (words.length === 2 && kind === "host") return { patterns: list.split(","), of: "address" };
    if (words.length === 2 && kind === "originalhost") return { patterns: list.split(","), of: "originalhost" };
    this.#found.leave(at, `Match ${value}`, "only “all”, “host” and “originalhost” are known without a connection");
    return { patterns: [], of: "originalhost" };
  }

  #include(value: string, at: SourcePosition, depth: number): void {
    if (depth >= deepest)
      return this.#found.leave(at, `Include ${value}`, `more than ${deepest} files within one another`);
    for (const pattern of splitWords(value)) {
      const files = this.#included(pattern, at.file);
      if (files.length === 0) this.#found.leave(at, `Include ${pattern}`, "there is no such file to read");
      for (const { file, text } of files) this.read(file, text, depth + 1);
    }
  }
}

/** What follows a word that begins with `#` is a comment, unless it is quoted. */
function withoutComment(text: string): string {
  return /^((?:"[^"]*"|(?!\s#)[^"])*)/.exec(text.startsWith("#") ? "" : text)?.[1]?.trimEnd() ?? "";
}

function matches(patterns: readonly string[], name: string): boolean {
  const isOut = patterns.some((pattern) => pattern.startsWith("!") && matchesGlob(pattern.slice(1), name));
  return !isOut && patterns.some((pattern) => !pattern.startsWith("!") && matchesGlob(pattern, name));
}

function takeHost(found: Found, blocks: readonly Block[], name: string, at: SourcePosition): void {
  const options = new Map<string, Option>();
  for (const { patterns, of, options: own } of blocks) {
    const address = addressOf(options.get("hostname")?.value ?? name, name);
    if (!matches(patterns, of === "address" ? address : name)) continue;
    for (const option of own) {
      const key = option.name.toLowerCase();
      if (!options.has(key)) options.set(key, option);
    }
  }
  if (options.get("user")?.value === "git" || gitServers.test(addressOf(options.get("hostname")?.value ?? name, name)))
    return found.leave(at, `the host ${name}`, "a server of Git, where nothing can be run");
  const fields = found.node(name, at);
  if (!fields) return;
  found.asCaller.add(fields);
  const hostName = options.get("hostname") ?? { value: name, at };
  found.put(fields, "address", addressOf(hostName.value, name), hostName.at, `the address of ${name}`);
  takeWay(found, fields, options);
  for (const key of ["user", "port"]) {
    const option = options.get(key);
    if (option) takeOption(found, fields, option.name, splitWords(option.value)[0] ?? "", option.at);
  }
  takeKeyFile(found, fields, options.get("identityfile"));
}

/** HostName with its tokens put in. */
function addressOf(hostName: string, name: string): string {
  return (splitWords(hostName)[0] ?? "").replaceAll(/%[h%]/g, (token) => (token === "%h" ? name : "%"));
}

/** Of ProxyJump and ProxyCommand the one that stands first counts. */
function takeWay(found: Found, fields: Fields, options: ReadonlyMap<string, Option>): void {
  const [way] = [...options].filter(([key]) => key === "proxyjump" || key === "proxycommand");
  if (way) takeOption(found, fields, way[1].name, way[1].value, way[1].at);
}

function takeKeyFile(found: Found, fields: Fields, option: Option | undefined): void {
  if (!option || option.value.toLowerCase() === "none") return;
  const path = (splitWords(option.value)[0] ?? "").replace(/^(%d|\$\{?HOME\}?)\//, "~/");
  if (/%|\$\{/.test(path)) found.leave(option.at, `IdentityFile ${option.value}`, "a path of kcore's has no tokens");
  else if (path.endsWith(".pub"))
    found.leave(option.at, `IdentityFile ${option.value}`, "a public key; the agent's keys are tried in order");
  else found.put(fields, "identityFile", path, option.at, "IdentityFile");
}
