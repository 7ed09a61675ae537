import { z } from "zod";
import { Fence, type NodeAssignment, type NodePhase } from "./records.ts";
import { Ownership, SignedStatement, Statement } from "./spec.ts";

/** Know the owner, and nothing else; fetch or build; bring into use; hold what is in use, as the bastion has reached the node anew; go back. */
export const orderSteps = ["fence", "prepare", "activate", "hold", "roll_back"] as const;
export type OrderStep = (typeof orderSteps)[number];

/** An order as it reaches the node: the owner's step, and the bastion's word for the manifest and for the owner. */
export const Order = z.object({
  fence: Fence,
  step: z.enum(orderSteps),
  signed: SignedStatement,
  /** An {@link Ownership}: the fence's owner and epoch are the bastion's choice, not a controller's. */
  ownership: SignedStatement,
  /**
   * Who has to hear from the node until the activation's deadline: its agent a controller, unless given; or whoever ordered it
   * from the bastion, over a new connection.
   */
  contact: z.enum(["controller", "bastion"]).optional(),
});
export type Order = z.infer<typeof Order>;

/** The step that a row orders. In every other phase the node has nothing to do but to know whose it is. */
export function stepOf(phase: NodePhase): OrderStep {
  if (phase === "preparing") return "prepare";
  if (phase === "activating" || phase === "rebooting") return "activate";
  return phase === "rolling_back" ? "roll_back" : "fence";
}

export function fenceOf(name: string, { epoch, owner, generation, seq }: NodeAssignment): Fence {
  return { name, epoch, owner, generation, seq };
}

type Verify = (signed: SignedStatement) => Promise<unknown>;

/** Refuses an order whose owner and epoch the bastion did not sign. @throws Error that names the difference */
export async function verifyOwner(
  { fence, ownership }: Pick<Order, "fence" | "ownership">,
  verify: Verify,
): Promise<void> {
  const { name, owner, epoch } = Ownership.parse(await verify(ownership));
  if (name !== fence.name || owner !== fence.owner || epoch !== fence.epoch)
    throw new Error(
      `the bastion signed ${owner} as the owner of “${name}” in epoch ${epoch}, not ${fence.owner} in epoch ${fence.epoch}`,
    );
}

/** Gives what an order carries out, once the bastion has signed it. @throws Error that names the difference */
export async function verifyManifest(
  { fence, signed }: Pick<Order, "fence" | "signed">,
  verify: Verify,
): Promise<Statement> {
  const statement = Statement.parse(await verify(signed));
  if (statement.name !== fence.name) throw new Error(`it is of the update “${statement.name}”, not of “${fence.name}”`);
  return statement;
}
