import { z } from "zod";

const Text = z.string().min(1).max(4_000);
const Kubernetes = z.strictObject({
  kubeconfig: Text.describe("A kubeconfig on the bastion, as kubernetes.node takes it."),
  deleteEmptyDirData: z.boolean().default(false).describe("Pods may lose what is in their emptyDir."),
  force: z.boolean().default(false).describe("Pods may go that no controller starts elsewhere."),
});
const hookFields = {
  state: Text.optional().describe("A state of the project that is applied to the node."),
  params: z.record(z.string(), z.unknown()).default({}).describe("The state's parameters."),
  command: Text.optional().describe("A command on the bastion; KCORE_NODE, KCORE_NODE_ID and KCORE_ADDRESS are set."),
};
type HookFields = { readonly state?: string | undefined; readonly command?: string | undefined };
const count = (...given: readonly unknown[]): number => given.filter((one) => one !== undefined).length;
const Hook = z
  .strictObject(hookFields)
  .refine(({ state, command }) => count(state, command) === 1, "needs either state or command");

/** `drain` in kcore.yaml: how work leaves a node and comes back. */
export const Drain = z
  .strictObject({
    ...hookFields,
    kubernetes: Kubernetes.optional().describe("Instead: pods are evicted by Kubernetes' API, as their budgets allow."),
    timeoutSeconds: z.int().min(1).max(86_400).default(900).describe("The most seconds that each hook may take."),
    onFailure: z.enum(["keep", "uncordon"]).default("keep").describe("Whether a failed drain is followed by uncordon."),
    after: Hook.optional().describe("Lets work come back to the node."),
    cordon: Hook.optional().describe("Lets no new work come to the node."),
    uncordon: Hook.optional().describe("Lets new work come to the node again."),
    storage: Hook.optional().describe("Waits until what the node stores is elsewhere."),
    leave: Hook.optional().describe("Takes the node out of a cluster of its software, such as etcd."),
  })
  .refine(({ state, command, kubernetes, leave }) => {
    const ways = count(state, command, kubernetes);
    return ways === 1 || (ways === 0 && leave !== undefined);
  }, "needs one of state, command and kubernetes, or leave alone")
  .refine(
    ({ onFailure, uncordon, kubernetes }) => onFailure === "keep" || (uncordon ?? kubernetes) !== undefined,
    "onFailure: uncordon needs uncordon, or kubernetes",
  );

/** A change of a node's work that an operator can ask for. */
export type WorkChange = "drain" | "undrain" | "cordon" | "uncordon";

/** One hook of a project, as the stages of orchestrations read it: each field is there for each kind. */
export interface ProjectHook {
  /** `failedDrain` follows a drain that failed. */
  readonly for: WorkChange | "failedDrain" | "storage" | "leave";
  readonly kind: "state" | "command" | "kubernetes";
  readonly state: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly command: string;
  readonly kubeconfig: string;
  readonly deleteEmptyDirData: boolean;
  readonly force: boolean;
  readonly limitSeconds: number;
}

/** The hooks of a project's `drain`: `run.hooks` in expressions. */
export function hooksOf({ kubernetes, timeoutSeconds: limitSeconds, ...drain }: z.output<typeof Drain>): ProjectHook[] {
  const none = { state: "", params: {}, command: "", kubeconfig: "", deleteEmptyDirData: false, force: false };
  const make = (what: ProjectHook["for"], own: (HookFields & { params?: object }) | undefined): ProjectHook[] => {
    const common = { ...none, for: what, limitSeconds };
    const { state, command, params = {} } = own ?? {};
    if (state !== undefined) return [{ ...common, kind: "state", state, params: { ...params } }];
    if (command !== undefined) return [{ ...common, kind: "command", command }];
    return kubernetes && what !== "storage" ? [{ ...common, ...kubernetes, kind: "kubernetes" }] : [];
  };
  return [
    ...make("drain", drain),
    ...make("undrain", drain.after),
    ...make("cordon", drain.cordon),
    ...make("uncordon", drain.uncordon),
    ...(drain.onFailure === "uncordon" ? make("failedDrain", drain.uncordon) : []),
    ...make("storage", drain.storage),
    ...make("leave", drain.leave),
    // The software's own way out, such as etcd's, leaves the node's object in Kubernetes.
    ...(drain.leave ? make("leave", undefined) : []),
  ];
}
