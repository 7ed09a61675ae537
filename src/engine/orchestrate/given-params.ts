import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { type GivenParam, givenFromText } from "#engine/params/bind-params.ts";
import type { ParamDeclaration, ParamDeclarations } from "#engine/params/declare-params.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { Secret } from "#engine/step/secret.ts";
import type { RunRequest } from "./run-types.ts";
import type { Orchestration } from "./load-orchestration.ts";

/** The operator's parameters; a text of `--params` counts as typed after `--set`. */
export function givenByUser(params: RunRequest["params"]): Map<string, GivenParam> {
  const given = new Map<string, GivenParam>();
  for (const [name, value] of Object.entries(params)) {
    if (typeof value === "string") given.set(name, { text: value });
    else if (value instanceof Secret) given.set(name, { value });
    else for (const [key, node] of givenFromText(JSON.stringify({ [name]: value }))) given.set(key, node);
  }
  return given;
}

/**
 * The given parameters of an orchestration; `--on` or the command line gives its target parameter.
 * @throws KcoreError TARGET_MISSING, USAGE
 */
export function givenToOrchestration(
  { name, target, params }: Orchestration,
  request: RunRequest,
  roster: Roster,
): Map<string, GivenParam> {
  const given = givenByUser(request.params);
  if (request.on !== undefined) {
    if (target === undefined) throw noTarget(name, [...params.values()]);
    if (given.has(target.name))
      throw new KcoreError({
        code: "USAGE",
        message: `the nodes are named twice: “${request.on}”, and by “${target.name}”`,
        hint: "name them once",
      });
    given.set(target.name, { text: request.on });
  }
  for (const { type, required, name: param } of params.values())
    if (type === "target" && required && !given.has(param)) throw missing(name, param, roster);
  return given;
}

/** The parameters, those of type target as the names of their nodes. A target that matches no node is an error at its place (S-25). */
export function resolveTargets(
  declared: ParamDeclarations,
  bound: Readonly<Record<string, unknown>>,
  roster: Roster,
  placeOf: (name: string) => SourcePosition | undefined = () => undefined,
): Readonly<Record<string, unknown>> {
  const params: Record<string, unknown> = Object.assign(Object.create(null) as Record<string, unknown>, bound);
  for (const { name, type } of declared.values()) {
    const value = params[name];
    if (type === "target" && typeof value === "string")
      params[name] = matchTargets(value, roster, placeOf(name))
        .map((node) => node.name)
        .join(",");
  }
  return params;
}

function noTarget(name: string, params: readonly ParamDeclaration[]): KcoreError {
  const several = params.filter(({ type }) => type === "target").map((param) => param.name);
  return new KcoreError({
    code: "USAGE",
    message:
      several.length === 0
        ? `the orchestration “${name}” takes no nodes: its file says which`
        : `the orchestration “${name}” takes several targets: ${several.join(", ")}`,
    hint: several.length === 0 ? "leave them out" : several.map((param) => `--set ${param}=…`).join(" "),
  });
}

function missing(name: string, param: string, roster: Roster): KcoreError {
  const nodes = [...roster.nodes.values()].map((node) =>
    node.roles.length === 0 ? node.name : `${node.name} (${node.roles.join(", ")})`,
  );
  const [first = "n1"] = roster.nodes.keys();
  return new KcoreError({
    code: "TARGET_MISSING",
    message: `“${name}” needs to know which nodes: its parameter “${param}”`,
    hint: ["update", "update_rollback"].includes(name)
      ? "kcore orchestrate update -f rollout.yaml, with --rollback to take it back: the manifest names them"
      : `kcore orchestrate ${name} ${first}, --on 'role:worker', or --set ${param}=${first}`,
    detail: nodes.length === 0 ? "the roster holds no node yet" : `the roster's nodes: ${nodes.join(", ")}`,
  });
}
