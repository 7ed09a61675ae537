import { hostsOfRoster, isController } from "#actions/cluster-context.ts";
import { controllerEndpoint } from "#api/ask.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { fromProject } from "../project/project-cluster.ts";
import { rosterIfAny } from "../roster/own-roster.ts";

/** Adds the roster's controllers to an error of unreachable endpoints, unless the roster has all hosts of these endpoints. */
export function withRoster(error: unknown, tried: readonly string[], project: string | undefined): unknown {
  if (!(error instanceof KcoreError) || error.problems.some(({ code }) => code !== "API_UNREACHABLE")) return error;
  let nodes: readonly NodeEntry[];
  try {
    nodes = [...(fromProject(project, rosterIfAny)?.nodes.values() ?? [])];
  } catch {
    return error;
  }
  const known = hostsOfRoster(nodes);
  const others = nodes.filter((node) => isController(node) && !tried.includes(controllerEndpoint(node.address)));
  const [other] = others;
  if (!other || tried.every((text) => known.has(parseEndpoint(text).host.toLowerCase()))) return error;
  const described = others.map(({ name, address }) => `${name} at ${controllerEndpoint(address)}`).join(", ");
  const hint = `kcore orchestrate deploy_node ${other.name} brings its address into this context; until then: kcore -s ${controllerEndpoint(other.address)} …`;
  const problems = error.problems.map((problem) => ({
    ...problem,
    message: `${problem.message}; the roster says ${described}`,
    hint,
  }));
  return new KcoreError(problems, { cause: error, exitCode: error.exitCode });
}
