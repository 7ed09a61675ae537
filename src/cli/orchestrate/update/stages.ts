import { isHook } from "#rollout/hooks.ts";
import { bringsOf, type Gate, type UpdateSpec } from "#rollout/spec.ts";
import { defined } from "#optional/defined.ts";

/** A stage as an orchestration's file would say it. */
export type Stage = Readonly<Record<string, unknown>>;

/** Some nodes that go through the stages together. */
export interface Wave {
  /** Behind the ids of its stages, as of other waves (tui/wave.ts): `@2`; empty for the first one. */
  readonly suffix: string;
  /** `2 of 3: n2`, for titles; empty when it is the only one. */
  readonly label: string;
  readonly nodes: readonly string[];
}

/** What all stages of an update say. */
export interface Ground {
  readonly spec: UpdateSpec;
  /** What is given to the states update/…, by expressions over the run's parameters. */
  readonly order: Readonly<Record<"update" | "owner" | "target" | "signed" | "system", string>> & {
    readonly tried: boolean;
  };
}

type Hook = Pick<Gate, "state" | "params" | "command">;

/** Only for nodes that do not run the target yet. */
const notThere = "{{ne stages.look.updater.facts.runtime params.target}}";
/** A gate on the bastion is asked again until it holds or its time is over. */
const untilItHolds = `end=$(($(date +%s) + $1))
until sh -c "$2"; do
  [ "$(date +%s)" -lt "$end" ] || exit 1
  sleep 2
done`;

/** Takes a wave from what it runs to the target: ready, drained, in use, kept, well, given back. */
export function forward(wave: Wave, { spec, order }: Ground): readonly Stage[] {
  const { window, drain, timeouts, healthGates, strategy, rollback } = spec;
  const boot = bootOf(spec);
  const pace = { maxUnavailable: strategy.maxUnavailable, maxFailures: 0 };
  const common = { ...pace, when: notThere };
  const updated = (id: string, title: string, more: object): Stage => ({
    ...named(id, title, wave),
    on: wave.nodes,
    apply: `update/${id}`,
    with: { ...order, ...more },
    ...common,
  });
  const action = (id: string, title: string, run: string, more: object): Stage => ({
    ...named(id, title, wave),
    run,
    each: wave.nodes,
    ...more,
    ...common,
  });
  // What fails once the node has it for good is taken back there; what fails before, the node takes back itself.
  const onFailure = rollback.automatic ? takeBack(wave, { spec, order }) : [];
  const behind = (stage: Stage, isGate: boolean): Stage =>
    onFailure.length > 0 && (!isGate || rollback.onHealthGateFailure)
      ? { ...stage, onFailure: onFailure.map((one) => withId(`${String(one["id"])}-${String(stage["id"])}`, one)) }
      : stage;
  const hooked = (id: string, title: string, at: string, hook: Hook & { readonly seconds: number; isGate?: boolean }) =>
    hookStage({ ...named(id, title, wave), ...common }, { ...hook, at, nodes: wave.nodes });
  const gateSeconds = healthGates.reduce((sum, { withinSeconds }) => sum + withinSeconds, 0);
  return [
    ...(window
      ? [
          action("window", "Wait for the maintenance window", "update.window", {
            with: defined(window),
            timeout: "192h",
          }),
        ]
      : []),
    bringsOf(spec) === "system"
      ? { ...updated("prepare", "Build", { limit: timeouts.prepareSeconds }), apply: "update/build" }
      : updated("prepare", "Prepare", { bundle: "{{params.file}}", limit: timeouts.prepareSeconds }),
    ...(drain.enabled && isHook(drain)
      ? [hooked("drain", "Drain", "drain", { ...drain, seconds: drain.timeoutSeconds })]
      : []),
    updated("activate", "Activate", { ...boot, limit: timeouts.activateSeconds }),
    {
      ...updated("hold", "Confirm over a new connection", {
        ...boot,
        limit: Math.max(timeouts.activateSeconds, boot.boots ? timeouts.rebootSeconds : 0) + gateSeconds,
      }),
      reconnect: true,
    },
    behind(
      action("ready", "Ready", "update.ready", {
        ...(bringsOf(spec) === "runtime" && { version: "{{params.version}}" }),
        within: Math.max(1, timeouts.verifySeconds),
        timeout: timeouts.verifySeconds + 60,
      }),
      true,
    ),
    ...healthGates.flatMap((gate, index) =>
      isHook(gate)
        ? [
            behind(
              hooked(gateId(index), `Gate ${gate.name}`, gateId(index), {
                ...gate,
                seconds: gate.withinSeconds,
                isGate: true,
              }),
              true,
            ),
          ]
        : [],
    ),
    ...undrain(wave, spec).map((stage) => behind({ ...stage, ...common }, false)),
  ];
}

/** Whether nodes may boot for it; which of them does, its updater finds out. */
function bootOf({ target, activation, timeouts }: UpdateSpec): { readonly boots: boolean; readonly bootLimit: number } {
  const { mode, rebootPolicy } = activation;
  const boots = bringsOf({ target }) === "system" && mode !== "test" && rebootPolicy !== "never";
  return { boots, bootLimit: timeouts.rebootSeconds };
}

/** Takes the nodes of a wave back, and lets work come again. */
export function backward(
  wave: Wave,
  { spec, order }: Ground,
  more: { readonly own: boolean; readonly of?: string; readonly when?: string },
): Stage[] {
  const { type, maxUnavailable } = spec.strategy;
  const { of = "" } = more;
  const pace = {
    concurrency: type === "one-at-a-time" ? 1 : maxUnavailable,
    order: "reverse",
    ...defined({ when: more.when }),
  };
  return [
    {
      ...named(`back${of}`, "Take back", wave),
      on: wave.nodes,
      apply: "update/back",
      with: { ...order, ...bootOf(spec), own: more.own, limit: spec.timeouts.activateSeconds },
      ...pace,
    },
    ...undrain(wave, spec, `-back${of}`).map((stage) => ({ ...stage, ...pace })),
  ];
}

/** The same for the one node whose stage failed. */
function takeBack(wave: Wave, { spec, order }: Ground): readonly Stage[] {
  const nowhere = (stage: Stage): Stage =>
    Object.fromEntries(Object.entries(stage).filter(([key]) => key !== "on" && key !== "each"));
  return [
    {
      id: "back",
      title: `Take back (${wave.nodes.join(", ")})`,
      apply: "update/back",
      with: { ...order, ...bootOf(spec), own: true, limit: spec.timeouts.activateSeconds },
    },
    ...undrain({ ...wave, suffix: "" }, spec, "-back").map(nowhere),
  ];
}

function undrain(wave: Wave, { drain }: UpdateSpec, of = ""): readonly Stage[] {
  const { enabled, after, timeoutSeconds } = drain;
  if (!enabled || !after || !isHook(after)) return [];
  return [
    hookStage(named(`undrain${of}`, "Undrain", wave), {
      ...after,
      at: "undrain",
      seconds: timeoutSeconds,
      nodes: wave.nodes,
    }),
  ];
}

interface HookStage extends Hook {
  /** Below `params.hooks`: what it takes. */
  readonly at: string;
  readonly seconds: number;
  readonly isGate?: boolean;
  readonly nodes: readonly string[];
}

function hookStage(
  stage: Stage,
  { state, params = {}, command, at, seconds, isGate = false, nodes }: HookStage,
): Stage {
  const given = `params.hooks.${at}`;
  const timeout = seconds + (isGate && command !== undefined ? 30 : 0);
  if (state !== undefined) {
    const keys = Object.keys(params).map((key) => [key, `{{lookup ${given}.params '${key}'}}`]);
    return { ...stage, on: nodes, apply: state, with: Object.fromEntries(keys) as object, timeout };
  }
  const env = { KCORE_NODE: "{{node.name}}", KCORE_NODE_ID: "{{node.id}}", KCORE_ADDRESS: "{{node.address}}" };
  const text = `{{${given}.command}}`;
  const words = isGate ? ["/bin/sh", "-c", untilItHolds, "gate", String(seconds), text] : ["/bin/sh", "-c", text];
  return { ...stage, run: "local.command", each: nodes, command: words, env, timeout };
}

/** What hooks take, as the parameter `hooks` of the run: nothing of it is an expression. */
export function hooksOf({ drain, healthGates }: UpdateSpec): Readonly<Record<string, object>> {
  const of = ({ params = {}, command = "" }: Hook): object => ({ params, command });
  return {
    drain: of(drain),
    undrain: of(drain.after ?? {}),
    ...Object.fromEntries(healthGates.map((gate, index) => [gateId(index), of(gate)])),
  };
}

export function gateId(index: number): string {
  return `gate${index + 1}`;
}

function named(id: string, title: string, { suffix, label }: Wave): Stage {
  return withId(`${id}${suffix}`, { title: label === "" ? title : `${title} (${label})` });
}

function withId(id: string, stage: Stage): Stage {
  return { ...stage, id, register: id.replaceAll(/[-@]/g, "_") };
}
