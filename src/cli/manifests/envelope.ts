import { z } from "zod";

export const Text = z.string().min(1);

/** What every manifest begins with. */
export const envelope = {
  apiVersion: Text.optional().describe("Not looked at."),
  kind: Text.describe("What it is: Cluster, NodeInstall, Node, DiskLayout or ClusterUpdate."),
};
