import type { Problem } from "#errors/problem.ts";
import type { Folder, FoundFile } from "#engine/project/folders.ts";
import type { SourceMap, SourceNode } from "#engine/yaml/node.ts";
import { declareParams, type ParamDeclarations } from "#engine/params/declare-params.ts";
import { unknownKeys } from "#engine/yaml/issues.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { checkRequisites } from "./requisites.ts";
import { readStep, type StepSource } from "./step-source.ts";

/** A state file, parsed, with every check that needs no node. */
export interface State {
  readonly name: string;
  /** The file's path as messages show it, such as `states/kcore/controller.yaml`. */
  readonly shown: string;
  readonly origin: Folder["origin"];
  readonly description?: string;
  readonly params: ParamDeclarations;
  readonly steps: readonly StepSource[];
}

const KEYS = ["description", "params", "steps"];

/** A state as far as its file could be read, and the problems of the rest. */
export interface StateWithProblems {
  /** Absent if the file is no map, or if its parameters cannot be read. */
  readonly state?: State;
  readonly problems: readonly Problem[];
}

/** Reads a state file and leaves out the steps that cannot be read; if the parameters cannot be read, there is no state. */
export function readState(name: string, { shown, folder }: FoundFile, source: SourceNode): StateWithProblems {
  if (source.kind !== "map") {
    const message = "a state is a map of description, params and steps";
    return { problems: [{ code: "YAML_TYPE", message, at: source.at }] };
  }
  const problems = new Problems();
  problems.add(...unknownKeys(source, KEYS));
  const params = problems.attempt(() => declareParams(source.get("params")));
  const steps = readSteps(source, problems);
  checkRequisites(steps, problems);
  const description = describe(source, problems);
  if (params === undefined) return { problems: problems.list };
  const state = { name, shown, origin: folder.origin, params, steps, ...omitUndefined({ description }) };
  return { state, problems: problems.list };
}

function describe(source: SourceMap, problems: Problems): string | undefined {
  const node = source.get("description");
  if (node === undefined) return undefined;
  if (node.kind === "scalar" && typeof node.value === "string") return node.value.trim();
  problems.add({ code: "YAML_TYPE", message: "“description” must be a text", at: node.at });
  return undefined;
}

function readSteps(source: SourceMap, problems: Problems): StepSource[] {
  const list = source.get("steps");
  if (list === undefined) {
    problems.add({ code: "YAML_KEY_MISSING", message: "“steps” is missing", at: source.at });
    return [];
  }
  if (list.kind !== "list") {
    problems.add({ code: "YAML_TYPE", message: "“steps” must be a list", at: list.at });
    return [];
  }
  return list.items.flatMap((item) => readStep(item, problems) ?? []);
}
