// One process, since they share nodes that were deployed once (test/support/deployed-lab.ts).
import "./deployed/deploy-node.ts";
import "./deployed/survives.ts";
import "./deployed/update-over-ssh.ts";
