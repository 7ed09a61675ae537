import { buildProgram } from "../program.ts";
import { complete } from "./candidates.ts";

/** `kcore completion candidates -- WORDS…`, what the shells ask behind the scenes: lines `VALUE<TAB>DESCRIPTION`. */
export async function printCandidates(words: readonly string[]): Promise<void> {
  const { candidates, files } = complete(await buildProgram(words), words);
  const lines = candidates.map(({ value, description }) => `${value}\t${description.replaceAll(/\s+/g, " ")}\n`);
  process.stdout.write(lines.join("") + (files ? ":files\n" : ""));
}
