import { omitUndefined } from "#base/omit-undefined.ts";
import type { z } from "zod";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { ModuleDefinition, Step, StepContext } from "#engine/step/define.ts";
import { requireOpen, UnopenedValue } from "#engine/step/encrypted-value.ts";
import { Secret } from "#engine/step/secret.ts";
import { diskOwnerId, type NodeEntry } from "#engine/roster/roster.ts";
import { lateNeeds } from "#engine/params/bind-params.ts";
import { evaluate, evaluateBoolean } from "#engine/expressions/evaluate.ts";
import { refuseSyntax, shellSources } from "#engine/expressions/shell-values.ts";
import { isUntrustedValue, refuseUntrustedName } from "#engine/expressions/untrusted-names.ts";
import { conditionText, nodeAt, type SourceNode } from "#engine/yaml/node.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { mergeReferences, referencesOf, type References, requireReferredOpen } from "#engine/expressions/references.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import type { Templates } from "#engine/expressions/template.ts";
import { type Needs, type Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import { argumentPlace } from "./argument-place.ts";
import { checkStep, type Condition, writtenTemplate } from "./check-step.ts";
import type { Files } from "./state-files.ts";
import { remnantsOf } from "./remnants.ts";
import type { NodeScope } from "./node-scope.ts";
import type { LateScope, PlannedStep, RenderedStep, UnresolvedStep } from "./planned-step.ts";
import { type CommonKeys, readCommonKeys } from "./step-keys.ts";
import type { ModuleStepSource, RequisiteKey } from "./step-source.ts";

export interface StepParts {
  readonly id: string;
  readonly title: string;
  readonly state: string;
  readonly source: ModuleStepSource;
  readonly module: ModuleDefinition;
  readonly scope: NodeScope;
  readonly conditions: readonly Condition[];
  readonly requisites: Readonly<Record<RequisiteKey, readonly string[]>>;
  readonly tags: readonly string[];
  readonly files: Files;
  readonly templates: Templates;
  readonly node: NodeEntry;
  /** Why its requisites leave the step out; absent: they do not. */
  readonly skip?: string;
  /** The Unknown that the step's `each` waits for. */
  readonly late?: Unknown;
}

/**
 * Makes one step. A step without late values is rendered here, once; otherwise the possible checks
 * run here, and `render` does the rest.
 * @throws KcoreError with every problem of the step.
 */
export function makeUnresolvedStep(parts: StepParts): { readonly step: UnresolvedStep; readonly isSkipped: boolean } {
  const registers = parts.scope.registeredSteps();
  const scopeOf = (scope: NodeScope, late: LateScope | undefined): Scope =>
    late === undefined ? scope.beforeSteps(registers) : scope.withLate(late, registers);
  const renderAt = (late: LateScope | undefined): RenderedStep => render(parts, (scope) => scopeOf(scope, late));
  const { id, title, state, source, module, requisites, tags, conditions } = parts;
  const untrusted = () =>
    conditions.some(({ node, scope }) => isUntrustedValue(node, scopeOf(scope, undefined))) && {
      isUntrusted: true as const,
    };
  const outline = {
    tags,
    require: requisites.require,
    watches: [...new Set([...requisites.restartOn, ...requisites.onChanges])],
    answers: requisites.onFailure,
    ...(parts.late !== undefined && { maybe: true }),
    ...(source.node.get("severity") && { isCheck: true as const }),
    id,
    title,
    state,
    module: module.name,
    at: source.at,
    args: () => evaluate(source.args, scopeOf(parts.scope, undefined)),
    argumentAt: (said: string) => argumentPlace(source.args, said),
    ...(source.register !== undefined && { register: source.register }),
  };
  try {
    const rendered = renderAt(undefined);
    const step = { ...outline, ...untrusted(), needs: { facts: false, steps: [] }, render: () => rendered };
    return { step, isSkipped: rendered.kind === "skipped" };
  } catch (error) {
    const problems = new Problems();
    if (error instanceof KcoreError) problems.add(...error.problems);
    else if (!(error instanceof UnknownValue)) throw error;
    problems.add(...checkStep(parts));
    problems.throwIfAny();
    openLateSecrets(parts, (scope) => scopeOf(scope, undefined));
  }
  const needs = needsOf(parts, (scope) => scopeOf(scope, undefined));
  return {
    step: { ...outline, ...untrusted(), needs, render: (late) => orUnknown(parts, () => renderAt(late)) },
    isSkipped: false,
  };
}

function orUnknown({ id, title }: StepParts, work: () => RenderedStep): RenderedStep {
  try {
    return work();
  } catch (error) {
    if (error instanceof UnopenedValue) throw new KcoreError(error.asProblem(), { cause: error });
    if (!(error instanceof UnknownValue)) throw error;
    return { kind: "unknown", id, title, after: error.unknown.after };
  }
}

function render(parts: StepParts, scopeOf: (scope: NodeScope) => Scope): RenderedStep {
  const { id, title, conditions, skip, late } = parts;
  if (skip !== undefined) return { kind: "skipped", id, title, reason: skip };
  for (const { node, scope } of conditions)
    if (!evaluateBoolean(node, scopeOf(scope)))
      return { kind: "skipped", id, title, reason: `not needed: ${conditionText(node)} is false` };
  if (late !== undefined) throw new UnknownValue(late);
  return { kind: "step", plan: plan(parts, scopeOf(parts.scope)) };
}

function plan(parts: StepParts, scope: Scope): PlannedStep {
  const { id, title, state, source, module, requisites } = parts;
  const problems = new Problems();
  const keys = problems.attempt(() => readCommonKeys(source.node, scope));
  const args = problems.attempt(() => argsOf(module, source.args, scope));
  // With wrong keys, problems of the module are reported, too; all values count as secret then.
  const { sensitive = keys === undefined, ...others } = keys ?? {};
  const context = contextOf(parts, scope, {
    sensitive,
    ...omitUndefined({ runAs: others.runAs }),
    ...(others.risk !== undefined && { onTrial: true }),
  });
  const made = args && problems.attempt(() => makeStep(parts, args.value, context));
  problems.throwIfAny();
  const step = made as Step;
  if (others.runAs !== undefined) refuseFiles(step, parts, others.runAs);
  refuseTrial(step, parts, others);
  refuseCheck(step, parts, others);
  const isHidden = sensitive || step.sensitive === true;
  const leaves = remnantsOf(module.name, { args: args?.value, step, sensitive: isHidden });
  return {
    id,
    title,
    state,
    module: module.name,
    at: source.at,
    step,
    ...(leaves.length > 0 && { leaves }),
    ...requisites,
    ...others,
    sensitive,
    ...(source.register !== undefined && { register: source.register }),
  };
}

/** Refuses `runAs` for a step with files from the bastion: only root may enter the run's folder (docs/runner.md, The state folder). */
function refuseFiles(step: Step, { module, source }: StepParts, user: string): void {
  const texts = [step.probe, step.guard, step.asks, step.apply, step.react];
  if (step.offers === undefined && texts.every((text) => text === undefined || text.blobs.length === 0)) return;
  throw new KcoreError({
    code: "RUN_AS_FILES",
    message: `this use of ${module.name} needs a file from the bastion, which ${user} could not read on the node`,
    at: source.moduleAt,
    hint: "leave runAs out, and give the user as owner:",
  });
}

/**
 * Refuses `risk` for a change that cannot be reverted, together with `runAs`, and together with `onChanges` or `onFailure`, which can
 * leave the step out; refuses `confirm` without `risk`.
 */
function refuseTrial(
  step: Step,
  { module, source, requisites }: StepParts,
  { risk, confirm, runAs }: CommonKeys,
): void {
  const problem = (message: string, hint: string): KcoreError =>
    new KcoreError({ code: "RISK_INVALID", message, at: source.moduleAt, hint });
  if (risk === undefined) {
    if (confirm !== undefined) throw problem("confirm is for a step with a risk", "add risk: connectivity");
    return;
  }
  if (!step.keep)
    throw problem(
      `this use of ${module.name} cannot be taken back, so it cannot have a risk`,
      "steps that can: files, links, units, services, and commands and scripts with revert:",
    );
  if (runAs !== undefined) throw problem("a step with a risk runs as root", "leave runAs out");
  if (requisites.onChanges.length + requisites.onFailure.length > 0)
    throw problem(
      "a step with a risk has its turn whatever others did",
      "use restartOn, or unless, instead of onChanges and onFailure",
    );
}

/** Refuses a check that may change the node, and a reason or remedy of a step that is no check. */
function refuseCheck(step: Step, { module, source }: StepParts, { severity, reason, remedy }: CommonKeys): void {
  const problem = (message: string, hint: string): KcoreError =>
    new KcoreError({ code: "CHECK_INVALID", message, at: source.moduleAt, hint });
  if (severity !== undefined && (step.apply !== undefined || step.always === true))
    throw problem(
      `this use of ${module.name} may change the node, so it cannot be a check`,
      "steps that only read: fact.assert, http.ready, port.open, wait.for, disk.health, and commands and scripts with check: true",
    );
  if (severity === undefined && (reason ?? remedy) !== undefined)
    throw problem("reason and remedy are for a check", "add severity: error, or severity: warning");
}

function argsOf(module: ModuleDefinition, node: SourceNode, scope: Scope): { readonly value: unknown } {
  const value = evaluate(node, scope) ?? {};
  requireOpen(value);
  const problems = new Problems();
  for (const { scalar } of shellSources(module.args, node, value as Readonly<Record<string, unknown>>))
    problems.attempt(() => refuseSyntax(scalar, scope));
  problems.throwIfAny();
  return { value: validateValue(value, node, module.args as z.ZodType) };
}

function makeStep({ source, module }: StepParts, args: unknown, context: StepContext): Step {
  try {
    return module.step(args, context);
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    // A module knows its arguments, not their places in the file.
    const problems = error.problems.map((problem): Problem => ({ at: source.moduleAt, ...problem }));
    throw new KcoreError(problems, { cause: error });
  }
}

function contextOf(
  { node, files, templates, source }: StepParts,
  scope: Scope,
  step: Required<Pick<StepContext, "sensitive">> & Pick<StepContext, "onTrial" | "runAs">,
): StepContext {
  return {
    node: node.name,
    nodeId: diskOwnerId(node),
    stateDir: node.stateDir,
    ...step,
    readFile: (path) => {
      refuseUntrustedName(nodeAt(source.args, ["source"]) ?? source.args, scope);
      return files.blob(path);
    },
    readFolder: (path, exclude) => {
      refuseUntrustedName(nodeAt(source.args, ["source"]) ?? source.args, scope);
      return files.folder(path, exclude);
    },
    remote: (content) => files.remote(content),
    renderTemplate: (name, vars = {}) => {
      const named = nodeAt(source.args, ["template"]);
      refuseUntrustedName(named ?? source.args, scope);
      const at = named?.at ?? source.moduleAt;
      const text = templates.render(name, { ...scope, ...vars }, at);
      if (!(text instanceof Secret)) return text;
      if (step.sensitive) return text.reveal();
      throw new KcoreError({
        code: "EXPRESSION_TYPE",
        message: `the template “${name}” puts a secret into its text`,
        at,
        hint: "give the step sensitive: true, so that the text is never shown",
      });
    },
  };
}

/** The values on which the step depends and which are not known before the run. */
function needsOf(parts: StepParts, scopeOf: (scope: NodeScope) => Scope): Pick<Needs, "facts" | "steps"> {
  const { source, scope, conditions, late } = parts;
  const own = lateNeeds(mergeReferences([referencesOf(source.node), ...templateReferences(parts)]), scopeOf(scope));
  const others = conditions.map(({ node, scope: place }) => lateNeeds(referencesOf(node), scopeOf(place)));
  const all = [own, ...others, ...(late === undefined ? [] : [late.needs])];
  return { facts: all.some(({ facts }) => facts), steps: [...new Set(all.flatMap(({ steps }) => steps))] };
}

/** Requires that sealed values are open now: none can be opened when the step is rendered during the run. @throws UnopenedValue */
function openLateSecrets(parts: StepParts, scopeOf: (scope: NodeScope) => Scope): void {
  for (const { node, scope } of parts.conditions) requireReferredOpen(referencesOf(node), scopeOf(scope));
  requireReferredOpen(
    mergeReferences([referencesOf(parts.source.node), ...templateReferences(parts)]),
    scopeOf(parts.scope),
  );
}

/** The references of the template that the step names in `template:`, if the name is no expression. */
function templateReferences({ source, templates }: StepParts): References[] {
  const name = writtenTemplate(source);
  return name === undefined ? [] : [templates.references(name.value, name.at)];
}
