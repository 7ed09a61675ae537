import { readFileSync } from "node:fs";

/** One command of a guide and its output; `…` in the output stands for anything. */
export interface TranscriptStep {
  readonly command: string;
  readonly output: readonly string[];
  readonly exitCode: number;
  /** Line of the command in the page. */
  readonly line: number;
}

/** A section of a page: its transcripts in order, and the files that it shows. */
export interface Guide {
  readonly title: string;
  readonly steps: readonly TranscriptStep[];
  /** The machines that its blocks need: running ones (```console lab), or ones without a system (```console blank). */
  readonly needs: "" | "lab" | "blank";
  readonly files: ReadonlyMap<string, string>;
}

/** The sections of a page that have transcripts. */
export function readGuides(file: string): readonly Guide[] {
  const guides: { title: string; steps: TranscriptStep[]; needs: Guide["needs"]; files: Map<string, string> }[] = [];
  let block: { readonly info: string; readonly lines: { text: string; line: number }[] } | undefined;
  for (const [index, text] of readFileSync(file, "utf8").split("\n").entries()) {
    const guide = guides.at(-1);
    if (block && text === "```") {
      const name = /^yaml file=(\S+)$/.exec(block.info)?.[1];
      if (guide && name !== undefined) guide.files.set(name, `${block.lines.map((line) => line.text).join("\n")}\n`);
      if (guide && /^console( |$)/.test(block.info)) {
        guide.steps.push(...stepsOf(block.lines));
        const [, needs = ""] = /^console (lab|blank)$/.exec(block.info) ?? [];
        guide.needs ||= needs as Guide["needs"];
      }
      block = undefined;
    } else if (block) block.lines.push({ text, line: index + 1 });
    else if (text.startsWith("```")) block = { info: text.slice(3), lines: [] };
    else if (text.startsWith("## ")) guides.push({ title: text.slice(3), steps: [], needs: "", files: new Map() });
  }
  return guides.filter(({ steps }) => steps.length > 0);
}

/** The commands of a transcript, each with its output. */
export function stepsOf(lines: readonly { readonly text: string; readonly line: number }[]): TranscriptStep[] {
  const steps: { command: string; output: string[]; exitCode: number; line: number }[] = [];
  for (const { text, line } of lines) {
    const code = /^exit code (\d+)$/.exec(text)?.[1];
    if (text.startsWith("$ ")) steps.push({ command: text.slice(2), output: [], exitCode: 0, line });
    else if (code !== undefined) (steps.at(-1) as { exitCode: number }).exitCode = Number(code);
    else steps.at(-1)?.output.push(text);
  }
  return steps;
}

/** The words of a command, split at blanks outside of single quotes, as a shell does. */
export function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
}

/**
 * Whether an output fits a page: `…` fits anything, a line of only `…` any number of lines.
 * Runs of blanks, ages, ids and dates count as the same.
 */
export function fits(output: string, shown: readonly string[]): boolean {
  const lines = shown.map((line) => (line === "…" ? "(?:[^\\n]*\\n)*?" : `${patternOf(line)}\\n`));
  return new RegExp(`^${lines.join("")}$`).test(sameForAll(output));
}

function patternOf(line: string): string {
  return sameForAll(line)
    .split("…")
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(/ +/g, " +"))
    .join("[^\\n]*?");
}

function sameForAll(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replaceAll(/\b\d+(?:\.\d+)?(?:ms|[smhd])\b/g, "<age>")
    .replaceAll(/ +$/gm, "");
}
