import { openLab, type Lab, type LabNode, type NodeSpec } from "#lab/lab.ts";
import { ownLab } from "./own-lab.ts";
import { SharedLine } from "./shared-line.ts";

/** One machine, called v1, for all tests of a `describe`: in the lab named `lab`, or else in a lab of this process. */
export class LabMachine {
  lab!: Lab;
  node!: LabNode;
  line!: SharedLine;

  constructor(spec: Omit<NodeSpec, "name">, lab?: string) {
    before(async () => {
      this.lab = lab === undefined ? await ownLab() : await openLab({ name: lab });
      if (lab !== undefined) await this.lab.down();
      [this.node] = (await this.lab.up([{ name: "v1", ...spec }])) as [LabNode];
      this.line = new SharedLine(this.node);
    });
    after(async () => {
      this.line?.close();
      await this.lab?.down();
    });
  }
}
