//! List, watch and write over HTTP/2, for the node and the controllers.
