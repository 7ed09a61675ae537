import { locatedHeader, placeText, sealedIn, shownPlace } from "#engine/encrypted-values/places.ts";
import type { Recipient } from "#engine/encrypted-values/recipients.ts";
import { Problems } from "#engine/yaml/problems.ts";
import type { Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { CommonFlags } from "../options.ts";
import { printRows } from "../terminal/format-result.ts";
import { projectSecrets, sealedFiles, type ProjectSecrets } from "./project-secrets.ts";

export interface ListSecretsFlags extends CommonFlags {
  readonly output: "table" | "json";
}

/**
 * `stale`: sealed to other recipients than recipients.yaml names. `misplaced`: sealed for another place. `unbound`: sealed by
 * another program, for no place. `broken`: the sealed text is damaged.
 */
type SecretStatus = "in order" | "stale" | "misplaced" | "unbound" | "broken";

interface SecretRow {
  readonly file: string;
  readonly path: string;
  readonly recipients: readonly string[];
  readonly status: SecretStatus;
  readonly problem?: Problem;
}

/** `kcore secrets list`: prints every sealed value with its recipients and status; needs no identity. */
export async function listSecrets({ project: given, output }: ListSecretsFlags): Promise<void> {
  const rows = await rowsOf(projectSecrets(given));
  const shown = rows.map(({ file, path, recipients, status }) => ({ file, path, recipients, status }));
  const cells = shown.map(({ file, path, recipients, status }) => [file, path, recipients.join(","), status]);
  printRows(
    shown,
    output,
    ["FILE", "PATH", "RECIPIENTS", "STATUS"],
    cells,
    "nothing is sealed yet: kcore secrets set FILE PATH",
  );
}

/** `kcore secrets check`: prints the number of sealed values. @throws KcoreError with the problems of all that are not in order */
export async function checkSecrets({ project: given, output }: ListSecretsFlags): Promise<void> {
  const rows = await rowsOf(projectSecrets(given));
  const problems = new Problems();
  for (const { problem } of rows) if (problem) problems.add(problem);
  problems.throwIfAny();
  const count = { secrets: rows.length, status: "in order" };
  printRows(count, output, ["SECRETS", "STATUS"], [[String(rows.length), "in order"]]);
}

async function rowsOf(project: ProjectSecrets): Promise<readonly SecretRow[]> {
  const recipients = await project.recipients();
  return sealedFiles(project).flatMap((tree) =>
    sealedIn(tree).map(({ node, path }) => {
      const row = { file: node.file.name, path: path.join(".") };
      const problems = new Problems();
      const header = problems.attempt(() => locatedHeader(node));
      if (!header)
        return { ...row, recipients: [], status: "broken" as const, ...omitUndefined({ problem: problems.list[0] }) };
      const { place, fingerprints } = header;
      const names = fingerprints.map((one) => recipients.find(({ fingerprint }) => fingerprint === one)?.name ?? "?");
      const fault = faultOf(place, placeText(row.file, path), fingerprints, recipients);
      if (!fault) return { ...row, recipients: names, status: "in order" as const };
      const { status, ...problem } = fault;
      return { ...row, recipients: names, status, problem: { ...problem, at: node.at } };
    }),
  );
}

function faultOf(
  place: string | undefined,
  here: string,
  fingerprints: readonly string[],
  recipients: readonly Recipient[],
): (Problem & { readonly status: SecretStatus }) | undefined {
  const hint = "kcore secrets rotate";
  const stale = { code: "SECRET_STALE", hint } as const;
  if (place === undefined)
    return { ...stale, status: "unbound", message: "this secret is bound to no place: another program sealed it" };
  if (place !== here)
    return {
      status: "misplaced",
      code: "SECRET_MISPLACED",
      message: `this secret was sealed for another place: ${shownPlace(place)}`,
      hint: `${hint} --moved, if it was moved by one who may`,
    };
  const missing = recipients.filter(({ fingerprint }) => !fingerprints.includes(fingerprint)).map(({ name }) => name);
  const former = fingerprints.filter((one) => !recipients.some(({ fingerprint }) => fingerprint === one)).length;
  const words = [
    ...(missing.length > 0 ? [`not sealed to ${missing.join(", ")}`] : []),
    ...(former > 0 ? [`sealed to ${former} who ${former === 1 ? "is" : "are"} no recipient any more`] : []),
  ];
  if (words.length > 0) return { ...stale, status: "stale", message: `this secret is ${words.join(", and ")}` };
  return undefined;
}
