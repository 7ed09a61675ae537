import type { z } from "zod";
import { placeOf, problemOfIssue, type CheckedValue } from "#engine/yaml/issues.ts";
import { nodeAt, type SourceEntry, type SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { descriptionAt, keysAt } from "#engine/yaml/schema-keys.ts";
import type { Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { UpdateSpec } from "#rollout/spec.ts";
import type { Refuse } from "#engine/layout/layout-schema.ts";
import { camelCase } from "./spellings.ts";
import { checkUpdate, commitHint } from "./check-update.ts";
import type { ClusterUpdateSchema, WrittenUpdate } from "./cluster-update-schema.ts";

/** Reads a `ClusterUpdate` in any dialect, once its schema accepts it. Adds contradictions to `problems`. */
export function wantedUpdate(
  { spec }: z.output<typeof ClusterUpdateSchema>,
  node: SourceNode,
  problems: Problems,
): UpdateSpec {
  checkSpellings(spec, node, problems);
  const refuse: Refuse = (path, message, hint) =>
    problems.add({ code: "UPDATE_INVALID", message, at: placeOf(node, ["spec", ...path]), hint });
  const { enabled, ...how } = spec.drain ?? {};
  if (enabled === undefined && Object.keys(omitUndefined(how)).length > 0)
    refuse(["drain"], "it is said how nodes are drained, not whether", "enabled: true");
  const update = updateSpecOf(spec);
  checkUpdate(update, refuse);
  return update;
}

/** The spec of a manifest in any dialect, with the defaults. */
function updateSpecOf(written: WrittenUpdate): UpdateSpec {
  const { type = written.strategy.strategyType, maxUnavailable, batchSize, canary } = written.strategy;
  const drain = written.drain ??
    written.drainPolicy ?? { enabled: written.drainVms, timeoutSeconds: written.drainTimeoutSeconds };
  const rollback = written.rollback ?? written.rollbackPolicy ?? { automatic: written.automaticRollback };
  const { selector, approvalPolicy, healthGates, timeouts, window } = written;
  return UpdateSpec.parse({
    target: omitUndefined(written.target),
    selector,
    strategy: omitUndefined({ type, maxUnavailable, batchSize, canary }),
    drain: omitUndefined(drain),
    activation: omitUndefined(written.activation),
    rollback: omitUndefined(rollback),
    healthGates,
    timeouts,
    ...omitUndefined({ approvalPolicy, window }),
  });
}

/** For each setting, the ways to write it; the keys of one way go together. */
const alternatives: readonly (readonly (readonly (keyof WrittenUpdate)[])[])[] = [
  [["drain"], ["drainPolicy"], ["drainVms", "drainTimeoutSeconds"]],
  [["rollback"], ["rollbackPolicy"], ["automaticRollback"]],
];

/** Adds a problem for each setting that is given in two ways, at the second one. */
function checkSpellings(spec: WrittenUpdate, node: SourceNode, problems: Problems): void {
  for (const groups of alternatives) {
    const isGiven = (key: string): boolean => spec[key as keyof WrittenUpdate] !== undefined;
    checkOneWay(node, ["spec"], groups, isGiven, problems);
  }
  const { type, strategyType } = spec.strategy;
  if (type !== undefined && strategyType !== undefined && type !== strategyType)
    checkOneWay(node, ["spec", "strategy"], [["type"], ["strategyType"]], () => true, problems);
}

function checkOneWay(
  node: SourceNode,
  path: readonly string[],
  groups: readonly (readonly string[])[],
  isGiven: (key: string) => boolean,
  problems: Problems,
): void {
  const map = nodeAt(node, path);
  if (map?.kind !== "map") return;
  const given = [...map.entries.values()].filter(({ key }) => groups.flat().includes(key) && isGiven(key));
  const [first] = given;
  const second = given.find(({ key }) => !groups.some((one) => one.includes(key) && one.includes(first?.key ?? "")));
  if (first && second)
    problems.add({
      code: "YAML_KEY_DUPLICATE",
      message: `“${writtenAs(second)}” and “${writtenAs(first)}” are two ways to say one thing`,
      at: second.keyAt,
      hint: "keep one of them",
    });
}

/** A key in the spelling of the file. */
const writtenAs = ({ file, start, end }: SourceEntry): string => file.text.slice(start, end);

/** The problems that the schema finds, with hints: the right place of an unknown key, the purpose of a wrong value. */
export function problemsOfUpdate(value: unknown, node: SourceNode, schema: z.ZodType): readonly Problem[] {
  const checked = { value, node, schema };
  const issues = schema.safeParse(value).error?.issues ?? [];
  return issues.flatMap((issue) =>
    problemOfIssue(issue, checked).map((problem, index) => {
      const key = issue.code === "unrecognized_keys" ? issue.keys[index] : undefined;
      const hint = key === undefined ? valueHint(issue.path, problem, checked) : keyHint(key, issue.path, schema);
      return hint === undefined ? problem : { ...problem, hint };
    }),
  );
}

function valueHint(
  path: readonly PropertyKey[],
  { hint }: Problem,
  { node, schema }: CheckedValue,
): string | undefined {
  if (hint !== undefined) return hint;
  const found = nodeAt(node, path);
  if (/^(?:flake|nixpkgs)Rev$/.test(String(path.at(-1))) && found?.kind === "scalar")
    return commitHint(String(found.value));
  return descriptionAt(schema, path)?.replace(/\.$/, "");
}

/** A hint for an unknown key: the place in a spec where it is known. */
function keyHint(key: string, path: readonly PropertyKey[], schema: z.ZodType): string | undefined {
  const here = path.join(".");
  if (here === "spec" && key === "forProvider")
    return "Crossplane's form is not read: the keys below forProvider belong below spec, its version and flake below spec.target";
  const places = ["spec", ...keysAt(schema, ["spec"]).map((name) => `spec.${name}`)];
  const place = places.find((one) => one !== here && keysAt(schema, one.split(".")).includes(camelCase(key)));
  return place === undefined ? undefined : `“${camelCase(key)}” belongs below “${place}”`;
}
