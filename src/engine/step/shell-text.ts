import { z } from "zod";

/** How a shell reads an argument: as one text, or as one of a program's words (`sh -c TEXT`). */
export interface ShellRead {
  readonly as: "text" | "words";
  /** The name of the shell that reads this text; undefined if no shell does with these arguments. */
  readonly shell: (args: Readonly<Record<string, unknown>>, text: string) => string | undefined;
}

/** The schemas of arguments that a shell reads: kcore checks the expressions in these arguments, and `kcore check` parses them. */
export const shellReads = z.registry<ShellRead>();

/**
 * An operator's code for sh. Functions that give a text to a shell take this type, so that each such argument is
 * declared.
 */
export type ShellText = string & z.core.$brand<"ShellText">;

/** The type of an argument that a shell reads: in the step, or later for cron, systemd or a login. */
export function shellText<Schema extends z.ZodType>(
  schema: Schema,
  shell: ShellRead["shell"] = () => "sh",
): z.core.$ZodBranded<Schema, "ShellText"> & Schema {
  return declared(schema, { as: "text", shell }) as z.core.$ZodBranded<Schema, "ShellText"> & Schema;
}

/** The type of an argument that is a program and its words. */
export function shellWords<Schema extends z.ZodType>(schema: Schema): Schema {
  return declared(schema, { as: "words", shell: () => "sh" });
}

/** A registered copy of the schema, since other fields may share the given one. */
function declared<Schema extends z.ZodType>(schema: Schema, read: ShellRead): Schema {
  const own = schema.clone();
  shellReads.add(own, read);
  return own;
}

/** The index of TEXT among words such as `[/usr/bin/env, bash, -ce, TEXT]` or `[su, -c, TEXT]`; undefined if there is none. */
export function textAmong(words: readonly unknown[]): number | undefined {
  const shell = words.findIndex((word) => shellOf(word) !== undefined);
  if (shell === -1) return undefined;
  const isText = (word: unknown): boolean => /^(?:-[A-Za-z]*c[A-Za-z]*|--(?:session-)?command)$/.test(plainText(word));
  const option = words.findIndex((word, at) => at > shell && isText(word));
  return option === -1 ? undefined : operandBehind(words, option);
}

/** The index of FILE among words such as `[bash, -e, FILE]`; undefined if no shell is among them. */
export function scriptAmong(words: readonly unknown[]): number | undefined {
  const shell = words.findIndex((word) => plainText(word).endsWith("sh") && shellOf(word) !== undefined);
  return shell === -1 ? undefined : operandBehind(words, shell);
}

/** The first word after `behind` that is neither an option nor the value of `-o`. */
function operandBehind(words: readonly unknown[], behind: number): number | undefined {
  const found = words.findIndex(
    (word, at) =>
      at > behind && !/^[-+]/.test(plainText(word)) && !/^[-+][A-Za-z]*[oO]$/.test(plainText(words[at - 1])),
  );
  return found === -1 ? undefined : found;
}

/** The name of the shell that a word calls, in any folder; `sh` for su and runuser. Undefined for other words. */
export function shellOf(word: unknown): string | undefined {
  const [, name] = /(?:^|\/)((?:a|ba|da|k|mk|z)?sh|su|runuser)$/.exec(plainText(word)) ?? [];
  return name === "su" || name === "runuser" ? "sh" : name;
}

/** The word if it is a text, else empty: YAML can put a map among a command's words (`[echo, foo: bar]`). */
function plainText(word: unknown): string {
  return typeof word === "string" ? word : "";
}
