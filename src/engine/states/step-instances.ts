import { KcoreError } from "#errors/problem.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { type Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
import { isUntrustedValue } from "#engine/expressions/untrusted-names.ts";
import { describeValue } from "#engine/yaml/node.ts";
import { itemsOf, itemLabels } from "./each.ts";
import type { NodeScope } from "./node-scope.ts";
import type { IncludeSource, ModuleStepSource } from "./step-source.ts";

/** A step or include for one item of its `each`, or without `each`. */
export interface StepInstance {
  /** `[label]` of the item; empty without `each`. */
  readonly label: string;
  readonly scope: NodeScope;
  /** The value of `each` if it is not known yet: this instance then stands for all items. */
  readonly late?: Unknown;
}

/** One instance for a plain step; one for each item of `each`; one that waits, if the items are not known yet. */
export function instancesOf({ each }: ModuleStepSource | IncludeSource, scope: NodeScope): readonly StepInstance[] {
  if (each === undefined) return [{ label: "", scope }];
  let value: unknown;
  try {
    value = evaluate(each, scope.beforeSteps());
  } catch (error) {
    if (!(error instanceof UnknownValue)) throw error;
    const { needs } = error.unknown;
    if (needs.facts || needs.steps.length > 0)
      throw new KcoreError(
        {
          code: "STATE_STEP_INVALID",
          message: "each goes over what is known before the run: params, node, nodes, vars",
          at: each.at,
        },
        { cause: error },
      );
    return [{ label: "", scope: scope.withItem(error.unknown), late: error.unknown }];
  }
  const items = itemsOf(value);
  if (items === undefined)
    throw new KcoreError({
      code: "EXPRESSION_TYPE",
      message: `each goes through a list or a map, not ${describeValue(value)}`,
      at: each.at,
    });
  const labels = itemLabels(items);
  return items.map((item, index) => {
    const node = each.kind === "list" ? each.items[index] : undefined;
    const source = node && { node, scope: () => scope.beforeSteps() };
    const isUntrusted = isUntrustedValue(node ?? each, scope.beforeSteps());
    return {
      label: `[${labels[index]}]`,
      scope: scope.withItem(item, new Map(isUntrusted ? [["item", source]] : [])),
    };
  });
}
