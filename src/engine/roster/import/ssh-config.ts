import { KcoreError, type Problem, type SourcePosition } from "#errors/problem.ts";
import type { Found, ForeignFile } from "./found.ts";
import { reasonFor, splitWords, takeOption } from "./ssh-options.ts";

/** Reads the files that an `Include` names; each with the name that is shown. */
export type ReadIncluded = (pattern: string, from: string) => readonly ForeignFile[];

/**
 * Asks `ssh -G` about each host. `textsIn` returns the texts of the config's files for a folder, in which each file is named by its index;
 * file 0 includes the others. Undefined if ssh is not installed; an empty text for a host that ssh refuses.
 */
export type AskSsh = (
  textsIn: (folder: string) => readonly string[],
  hosts: readonly string[],
) => readonly string[] | undefined;

interface Option {
  readonly key: string;
  readonly name: string;
  readonly value: string;
  readonly at: SourcePosition;
  /** The patterns of its `Host`. */
  readonly hosts: readonly string[];
}

/** The options that say how to reach a host; all others are reported at their lines. */
const reaching = ["hostname", "user", "port", "identityfile", "proxyjump", "proxycommand"];
const gitServers = /^(\w+\.)*(github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|git\.sr\.ht)$/i;
/** A value at the end of the config: `ssh -G` prints it for an option that no line sets. */
const none = "kcore-none";

/** Reads the hosts that an ssh_config names without wildcards; true: through ssh, false: by kcore's own reader. */
export function readSshConfig(
  found: Found,
  { file, text }: ForeignFile,
  { included, askSsh }: { readonly included: ReadIncluded; readonly askSsh: AskSsh },
): boolean {
  const config = new Config(found, included);
  config.read(file, text);
  const hosts = [...config.hosts.keys()];
  const sshAnswers = hosts.length === 0 ? [] : askSsh((folder) => config.textsIn(folder), hosts);
  const answers = sshAnswers?.map(readAnswer) ?? config.withoutSsh();
  for (const [index, [name, at]] of [...config.hosts].entries()) {
    const answer = answers[index] ?? new Map();
    if (answer.size === 0) found.leaveOut(at, `the host ${name}`, "ssh -G refuses it");
    else takeHost(found, config, answer, name);
  }
  return sshAnswers !== undefined;
}

/** A config's files, reduced to lines that select hosts or say how to reach them. No remaining line makes `ssh -G` run a command. */
class Config {
  /** Names without wildcards, with the line that names each first. */
  readonly hosts = new Map<string, SourcePosition>();
  readonly options: Option[] = [];
  readonly #found: Found;
  readonly #included: ReadIncluded;
  readonly #numbers = new Map<string, number>();
  readonly #files: ((folder: string) => string)[][] = [];
  /** The patterns of the last `Host`, for kcore's own reader. */
  #patterns: readonly string[] = ["*"];
  /** The lines that kcore's own reader must refuse. */
  readonly #unsure: SourcePosition[] = [];

  constructor(found: Found, included: ReadIncluded) {
    this.#found = found;
    this.#included = included;
  }

  /** Reads a file once; returns the number by which `Include` lines name it. */
  read(file: string, text: string): number {
    const known = this.#numbers.get(file);
    if (known !== undefined) return known;
    const lines: ((folder: string) => string)[] = [];
    const number = this.#files.push(lines) - 1;
    this.#numbers.set(file, number);
    for (const [index, line] of text.split(/\r?\n/).entries()) {
      const at = { file, line: index + 1, column: line.length - line.trimStart().length + 1 };
      const [, name, rest = ""] = /^\s*([A-Za-z][A-Za-z0-9]*)(?:\s*=\s*|\s+|$)(.*?)\s*$/.exec(line) ?? [];
      if (name !== undefined) lines.push(...this.#line({ name, value: withoutComment(rest), at, line }));
      else if (!/^\s*(#|$)/.test(line)) this.#found.leaveOut(at, "a line", "it is none of an ssh_config");
    }
    return number;
  }

  textsIn(folder: string): readonly string[] {
    const texts = this.#files.map((lines) => lines.map((line) => `${line(folder)}\n`).join(""));
    return texts.map((text, at) =>
      at === 0 ? `${text}Match final all\n  User ${none}\n  IdentityFile ${none}\n` : text,
    );
  }

  /** Each host's options, where the first value counts. @throws KcoreError ROSTER_IMPORT with lines of which kcore's own reader is not sure */
  withoutSsh(): readonly ReadonlyMap<string, string>[] {
    const problems = this.#unsure.map((at): Problem => ({
      code: "ROSTER_IMPORT",
      message: "this line cannot be read with certainty without ssh",
      at,
      hint: "install openssh-client",
    }));
    if (problems.length > 0) throw new KcoreError(problems.slice(0, 20));
    return [...this.hosts.keys()].map((host) => {
      const options = this.options.filter(({ hosts }) => hosts.includes(host) || hosts.includes("*"));
      return new Map([["hostname", host], ...options.toReversed().map(({ key, value }) => [key, value] as const)]);
    });
  }

  #line({
    name,
    value,
    at,
    line,
  }: Pick<Option, "name" | "value" | "at"> & { readonly line: string }): ((folder: string) => string)[] {
    const key = name.toLowerCase();
    if (key === "include") return this.#include(value, at);
    if (key === "host") this.#addHosts(splitWords(value), at);
    else if (key === "match") {
      // Quotes and backslashes within a word must not hide `exec`.
      if (/(^|[\s,=!])exec([\s=]|$)/i.test(line.replaceAll(/["'\\]/g, ""))) {
        this.#found.leaveOut(at, `Match ${value}`, "an import runs no command");
        return [() => "Host !*"];
      }
      this.#unsure.push(at);
    } else if (reaching.includes(key)) {
      this.options.push({ key, name, value, at, hosts: this.#patterns });
      if (/["'\\%$]/.test(value) && key !== "proxycommand") this.#unsure.push(at);
    } else {
      this.#found.leaveOut(at, `${name} ${value}`.trim(), reasonFor(key));
      return [];
    }
    return [() => line];
  }

  #addHosts(names: readonly string[], at: SourcePosition): void {
    this.#patterns = names;
    for (const name of names)
      if (!/[*?!]/.test(name)) this.hosts.set(name, this.hosts.get(name) ?? at);
      else if (name !== "*") this.#unsure.push(at);
  }

  #include(value: string, at: SourcePosition): ((folder: string) => string)[] {
    this.#unsure.push(at);
    return splitWords(value).flatMap((pattern) => {
      const files = this.#included(pattern, at.file);
      if (files.length === 0) this.#found.leaveOut(at, `Include ${pattern}`, "there is no such file to read");
      const numbers = files.map(({ file, text }) => this.read(file, text));
      return numbers.map((number) => (folder: string) => `Include "${folder}/${number}"`);
    });
  }
}

/** The first value of each option that `ssh -G` prints, without those that the config does not give. */
function readAnswer(text: string): ReadonlyMap<string, string> {
  const options = text.split("\n").map((line) => [line.replace(/ .*/s, ""), line.replace(/^\S* ?/, "")] as const);
  return new Map(options.filter(([key, value]) => reaching.includes(key) && value !== none).toReversed());
}

/** A word that begins with `#` begins a comment, unless it is quoted. */
function withoutComment(text: string): string {
  return /^((?:"[^"]*"|(?!\s#)[^"])*)/.exec(text.startsWith("#") ? "" : text)?.[1]?.trimEnd() ?? "";
}

function takeHost(found: Found, { hosts, options }: Config, answer: ReadonlyMap<string, string>, name: string): void {
  const start = hosts.get(name) ?? { file: "", line: 1, column: 1 };
  const address = answer.get("hostname") ?? name;
  if (answer.get("user") === "git" || gitServers.test(address))
    return found.leaveOut(start, `the host ${name}`, "a server of Git, where nothing can be run");
  const fields = found.node(name, start);
  if (!fields) return;
  found.asCaller.add(fields);
  found.put(fields, "address", address, start, `the address of ${name}`);
  for (const key of ["user", "port", "proxyjump", "proxycommand"]) {
    const value = answer.get(key);
    if (value === undefined || (key === "port" && value === "22")) continue;
    const option = options.find((one) => one.key === key && one.value === value);
    takeOption(found, fields, option?.name ?? key, value, option?.at ?? start);
  }
  const path = answer.get("identityfile") ?? "none";
  const { at = start } = options.find(({ key, value }) => key === "identityfile" && value.includes(path)) ?? {};
  if (path.toLowerCase() !== "none") takeKeyFile(found, fields, path, at);
}

function takeKeyFile(found: Found, fields: Parameters<Found["put"]>[0], given: string, at: SourcePosition): void {
  const path = given.replace(/^(%d|\$\{?HOME\}?)\//, "~/");
  if (/%|\$\{/.test(path)) found.leaveOut(at, `IdentityFile ${path}`, "a path of kcore's has no tokens");
  else if (path.endsWith(".pub"))
    found.leaveOut(at, `IdentityFile ${path}`, "a public key; the agent's keys are tried in order");
  else found.put(fields, "identityFile", path, at, "IdentityFile");
}
