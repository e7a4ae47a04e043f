/** On every page: live updates, times, shortcuts, and copy buttons. */

import { beginCopying } from "./copy.js";
import { beginKeys } from "./keys.js";
import { follow } from "./live.js";
import { beginTimes } from "./times.js";

beginTimes();
beginKeys();
beginCopying();
follow();
