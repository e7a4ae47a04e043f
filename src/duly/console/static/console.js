/** What every page has: liveness, times, keys, and texts to copy. */

import { beginCopying } from "./copy.js";
import { beginKeys } from "./keys.js";
import { follow } from "./live.js";
import { beginTimes } from "./times.js";

beginTimes();
beginKeys();
beginCopying();
follow();
