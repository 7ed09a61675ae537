import { z } from "zod";

/** How an argument reaches a shell: as one text, or as a program with its words, one of which a shell may read (`sh -c TEXT`). */
export interface ShellRead {
  readonly as: "text" | "words";
  /** The shell, as it may be called; undefined where none reads this text beside these arguments. */
  readonly shell: (args: Readonly<Record<string, unknown>>, text: string) => string | undefined;
}

/** Arguments that a shell reads, by their schemas: kcore judges what expressions put into them, and `kcore check` parses them. */
export const shellReads = z.registry<ShellRead>();

/** Code of sh that an operator wrote: what gives a text to a shell takes this type, so that no argument comes there undeclared. */
export type ShellText = string & z.core.$brand<"ShellText">;

/** The type of an argument that a shell reads, wherever that is: at once, by cron, by systemd, at a login. */
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

/** A schema of its own, as others may share the one that is given. */
function declared<Schema extends z.ZodType>(schema: Schema, read: ShellRead): Schema {
  const own = schema.clone();
  shellReads.add(own, read);
  return own;
}

/** Where the text stands among a command's words that a shell reads: behind the `-c` of `[/usr/bin/env, bash, -ce, TEXT]` or `[su, -c, TEXT]`. */
export function textAmong(words: readonly unknown[]): number | undefined {
  const shell = words.findIndex((word) => shellOf(word) !== undefined);
  if (shell === -1) return undefined;
  const isText = (word: unknown): boolean => /^(?:-[A-Za-z]*c[A-Za-z]*|--(?:session-)?command)$/.test(String(word));
  const option = words.findIndex((word, at) => at > shell && isText(word));
  return option === -1 ? undefined : operandBehind(words, option);
}

/** Where the file of code may stand among a command's words: in `[bash, -e, FILE]` behind the shell. */
export function scriptAmong(words: readonly unknown[]): number | undefined {
  const shell = words.findIndex((word) => String(word).endsWith("sh") && shellOf(word) !== undefined);
  return shell === -1 ? undefined : operandBehind(words, shell);
}

/** The first word behind that is no option, nor what `-o` names. */
function operandBehind(words: readonly unknown[], behind: number): number | undefined {
  const found = words.findIndex(
    (word, at) => at > behind && !/^[-+]/.test(String(word)) && !/^[-+][A-Za-z]*[oO]$/.test(String(words[at - 1])),
  );
  return found === -1 ? undefined : found;
}

/** The name of the shell that a word calls, whatever its folder. */
export function shellOf(word: unknown): string | undefined {
  const [, name] = /(?:^|\/)((?:a|ba|da|k|mk|z)?sh|su|runuser)$/.exec(String(word)) ?? [];
  return name === "su" || name === "runuser" ? "sh" : name;
}
