"""Advice: which connection to use for one layer at one depth, with what it costs and how sure that is.

``options`` has what the user may say, ``request`` checks it (``own_code`` the layer and the loss) and lists what is
compared, ``budget`` divides the time, ``before_training`` times, ``halving`` and ``finals`` train, ``finals`` judges,
``answer`` concludes (``about`` has the request, in sentences too), ``page`` writes it down. ``run`` has ``advise``,
which does all of it; ``measured`` has what it measured and decided so far.
"""
