import { join } from "node:path";
import { fakeSystemctl } from "../systemctl.ts";
import { ShText } from "./expected.ts";
import type { StandInAnswer, Table } from "./table.ts";

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The texts of programs that stand for real ones; they write all calls to FOLDER/calls, and unknown calls to FOLDER/untaught. */
export function standIns(commands: Table["commands"], dir: string, folder: string): Record<string, string> {
  const calls = join(folder, "calls");
  const untaught = join(folder, "untaught");
  return Object.fromEntries(
    Object.entries(commands).flatMap(([name, taught]) => {
      if (taught === null) return [];
      if (taught === "systemd") return Object.entries(fakeSystemctl(dir));
      const body = taught instanceof ShText ? taught.text : casesOf(taught);
      // In a subshell, so that its end can be seen: 64 says that it does not know its arguments.
      const text = `echo "${name} $*" >>${calls}
(
${body}
)
code=$?
[ "$code" != 64 ] || echo "${name} $*" >>${untaught}
exit "$code"`;
      return [[name, text]];
    }),
  );
}

/** A case statement of sh; a star in the arguments stands for any text. */
function casesOf(answers: Readonly<Record<string, StandInAnswer>>): string {
  const branches = Object.entries(answers).map(([words, answer]) => {
    const { sh, prints, fails, code = 0 } = typeof answer === "string" ? { prints: answer } : answer;
    const lines = [
      ...(sh === undefined ? [] : [sh]),
      ...(prints === undefined || prints === "" ? [] : [`printf '%s\\n' ${quoted(prints.replace(/\n$/, ""))}`]),
      ...(fails === undefined ? [] : [`printf '%s\\n' ${quoted(fails)} >&2`]),
      ...(code === 0 ? [] : [`exit ${code}`]),
    ];
    const pattern = words
      .split("*")
      .map((part) => (part === "" ? "" : quoted(part)))
      .join("*");
    return `${pattern === "" ? "''" : pattern})\n${lines.join("\n")}\n;;`;
  });
  return `case "$*" in\n${branches.join("\n")}\n*) exit 64 ;;\nesac`;
}
