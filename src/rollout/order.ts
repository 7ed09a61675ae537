import { z } from "zod";
import { FencingToken, type NodeAssignment, type NodePhase } from "./records.ts";
import { OwnershipStatement, SignedStatement, UpdateStatement } from "./spec.ts";

/** The steps of a node: learn its owner, fetch or build, bring into use, keep that for good (the bastion orders it), go back. */
export const orderSteps = ["fence", "prepare", "activate", "hold", "roll_back"] as const;
export type OrderStep = (typeof orderSteps)[number];

/** An order as it reaches the node: the owner's step, with manifest and owner as the bastion signed them. */
export const Order = z.object({
  fence: FencingToken,
  step: z.enum(orderSteps),
  signed: SignedStatement,
  /** An {@link OwnershipStatement}: the fence's owner and epoch are the bastion's choice, not a controller's. */
  ownership: SignedStatement,
  /**
   * The side that must have contact with the node before the activation's deadline: by default a controller, with the agent; or the bastion,
   * over a new connection.
   */
  contact: z.enum(["controller", "bastion"]).optional(),
});
export type Order = z.infer<typeof Order>;

/** The step that a phase orders; `fence` where the node has nothing to do. */
export function stepOf(phase: NodePhase): OrderStep {
  if (phase === "preparing") return "prepare";
  if (phase === "activating" || phase === "rebooting") return "activate";
  return phase === "rolling_back" ? "roll_back" : "fence";
}

/** The token of the order that a row gives to its node. */
export function fenceOf(name: string, { epoch, owner, generation, seq }: NodeAssignment): FencingToken {
  return { name, epoch, owner, generation, seq };
}

type SignatureCheck = (signed: SignedStatement) => Promise<unknown>;

/** Refuses an order whose owner and epoch the bastion did not sign. @throws Error that names the difference */
export async function verifyOwner(
  { fence, ownership }: Pick<Order, "fence" | "ownership">,
  verify: SignatureCheck,
): Promise<void> {
  const { name, owner, epoch } = OwnershipStatement.parse(await verify(ownership));
  if (name !== fence.name || owner !== fence.owner || epoch !== fence.epoch)
    throw new Error(
      `the bastion signed ${owner} as the owner of “${name}” in epoch ${epoch}, not ${fence.owner} in epoch ${fence.epoch}`,
    );
}

/** The statement that an order carries out, if the bastion signed it. @throws Error that names the difference */
export async function verifyManifest(
  { fence, signed }: Pick<Order, "fence" | "signed">,
  verify: SignatureCheck,
): Promise<UpdateStatement> {
  const statement = UpdateStatement.parse(await verify(signed));
  if (statement.name !== fence.name) throw new Error(`it is of the update “${statement.name}”, not of “${fence.name}”`);
  return statement;
}
