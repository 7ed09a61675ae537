import { groupRows, isBad, reachTopic, type CheckRow } from "./check-rows.ts";
import { linesOf } from "./draw-checks.ts";

/** A cause of trouble that `kcore doctor` names. */
export interface Finding {
  readonly severity: "error" | "warning" | "note";
  readonly topic: string;
  readonly cause: string;
  readonly nodes: readonly string[];
  /** Lines of output. */
  readonly evidence: readonly string[];
  readonly remedy?: string;
}

/** Topics whose failures explain those of the others: a node that does not answer, then the checks in the order of their files. */
const firstTopics: readonly string[] = ["run", reachTopic];

/**
 * The findings by likelihood. Errors come before warnings, and warnings before notes. Within these, a node that does not
 * answer and this machine's own certificates come first. Then comes the order of the checks, in which a cause stands before its effects.
 */
export function findingsOf(rows: readonly CheckRow[], own: readonly Finding[]): readonly Finding[] {
  const found = groupRows(rows.filter((row) => isBad(row) || row.result === "warning")).map((group): Finding => {
    const { topic, check, nodes, result, found: text = "", detail = "", remedy } = group;
    // A message may begin with the check's title already.
    const isTold = topic === reachTopic || text.startsWith(check.replace(/\[[^]*\]$/, ""));
    const said = text === "" ? check : isTold ? text : `${check}: ${text}`;
    const evidence = linesOf(detail).filter((line) => line !== text);
    const severity = result === "warning" ? "warning" : "error";
    return { severity, topic, cause: said, nodes, evidence, ...(remedy !== undefined && { remedy }) };
  });
  const isFirst = ({ topic }: Finding): boolean => firstTopics.includes(topic);
  const inOrder = [...found.filter(isFirst), ...own, ...found.filter((one) => !isFirst(one))];
  return (["error", "warning", "note"] as const).flatMap((severity) =>
    inOrder.filter((finding) => finding.severity === severity),
  );
}

/** The findings as numbered paragraphs; pure. */
export function drawFindings(findings: readonly Finding[], checks: number): string {
  const told = findings.map(({ severity, cause, nodes, evidence, remedy }, at) => {
    const where = nodes.length === 0 ? "" : `  (${nodes.join(", ")})`;
    const lines = [
      `${at + 1}. ${severity}: ${cause}${where}`,
      ...evidence.map((line) => `   | ${line}`),
      ...(remedy === undefined ? [] : [`   to mend it: ${remedy}`]),
    ];
    return `${lines.join("\n")}\n\n`;
  });
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const all = `${checks} checks, ${findings.length} ${findings.length === 1 ? "finding" : "findings"}`;
  return `${told.join("")}${all}${errors === 0 ? ": nothing that must be mended" : ""}\n`;
}
