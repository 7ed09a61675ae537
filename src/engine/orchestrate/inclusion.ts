import { z } from "zod";
import type { SourcePosition } from "#errors/problem.ts";
import { plainOf, type SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import type { ParamDeclarations } from "#engine/params/declare-params.ts";
import { validateValue } from "#engine/yaml/validate.ts";

/** An `include` among stages, as its file has it. */
export interface StageInclude {
  readonly include: string;
  /** The place of the name. */
  readonly at: SourcePosition;
  readonly with?: SourceNode;
  readonly when?: SourceNode;
}

/** The include that brought a stage: the stage sees these parameters alone, and none of the including file. */
export interface Inclusion extends StageInclude {
  readonly params: ParamDeclarations;
}

/** The schema of an `include` among stages. */
export const IncludeShape = z.strictObject({
  include: z
    .string()
    .regex(/^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/, "must name one orchestration, written out, such as deploy_node")
    .describe("The orchestration whose stages stand in this place."),
  with: z.record(z.string(), z.unknown()).optional().describe("The parameters of the included orchestration."),
  when: z.unknown().optional().describe("True or false, asked for each included stage."),
});

/** Reads one `include`. @throws KcoreError with every problem of it. */
export function readInclude(node: SourceMap): StageInclude {
  const { include } = validateValue(plainOf(node), node, IncludeShape);
  const [given, when] = [node.get("with"), node.get("when")];
  return { include, at: (node.get("include") as SourceNode).at, ...(given && { with: given }), ...(when && { when }) };
}
